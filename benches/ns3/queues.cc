// Replays recorded arrivals through a queue disc of ns-3 in front of a link of constant rate, and prints what became of them.
//
// c++ -O2 -std=c++17 queues.cc -o queues $(pkg-config --cflags --libs ns3-traffic-control)
// ./queues DISCIPLINE RATE_BPS RUN NAME=VALUE… < ARRIVALS
//
// DISCIPLINE is a type of ns-3, such as ns3::RedQueueDisc, followed by its attributes. Each line of the arrivals is
// "time_ns flow bytes ecn", where ecn is 1 for an ECN-capable packet. The output is one line: packets that left, were dropped,
// and were marked, and the mean and the 95th percentile of the delays of those that left, in ms. As in a device, the packet in
// service is not in the queue. The program `ns3_queues` of paceline-netsim runs this one beside Paceline.

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

class Item : public QueueDiscItem
{
  public:
    Item(Ptr<Packet> packet, uint32_t flow, bool capable)
        : QueueDiscItem(packet, Address(), 0), m_arrival(Simulator::Now()), m_flow(flow), m_capable(capable)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        return m_capable;
    }

    uint32_t Hash(uint32_t) const override
    {
        return m_flow;
    }

    const Time m_arrival;

  private:
    const uint32_t m_flow;
    const bool m_capable;
};

struct Server
{
    Ptr<QueueDisc> queue;
    DataRate rate;
    bool busy = false;
    std::vector<double> delays;

    void Arrive(uint32_t flow, uint32_t bytes, bool capable)
    {
        queue->Enqueue(Create<Item>(Create<Packet>(bytes), flow, capable));
        if (!busy)
        {
            Serve();
        }
    }

    void Serve()
    {
        auto item = DynamicCast<Item>(queue->Dequeue());
        busy = item != nullptr;
        if (busy)
        {
            delays.push_back((Simulator::Now() - item->m_arrival).GetSeconds() * 1e3);
            Simulator::Schedule(rate.CalculateBytesTxTime(item->GetSize()), &Server::Serve, this);
        }
    }
};

} // namespace

int
main(int argc, char** argv)
{
    if (argc < 4)
    {
        std::fprintf(stderr, "usage: queues DISCIPLINE RATE_BPS RUN NAME=VALUE... < ARRIVALS\n");
        return 2;
    }
    RngSeedManager::SetRun(std::stoul(argv[3]));
    ObjectFactory factory;
    factory.SetTypeId(argv[1]);
    for (int i = 4; i < argc; ++i)
    {
        const std::string setting = argv[i];
        const auto equals = setting.find('=');
        factory.Set(setting.substr(0, equals), StringValue(setting.substr(equals + 1)));
    }
    Server server;
    server.rate = DataRate(std::stoull(argv[2]));
    server.queue = factory.Create<QueueDisc>();
    if (auto fair = DynamicCast<FqCoDelQueueDisc>(server.queue))
    {
        fair->SetQuantum(1514);
    }
    server.queue->Initialize();

    int64_t at;
    uint32_t flow;
    uint32_t bytes;
    int capable;
    int64_t last = 0;
    while (std::cin >> at >> flow >> bytes >> capable)
    {
        Simulator::Schedule(NanoSeconds(at), &Server::Arrive, &server, flow, bytes, capable != 0);
        last = std::max(last, at);
    }
    Simulator::Stop(NanoSeconds(last) + Seconds(5));
    Simulator::Run();

    auto& delays = server.delays;
    double sum = 0;
    for (double delay : delays)
    {
        sum += delay;
    }
    std::sort(delays.begin(), delays.end());
    const auto& stats = server.queue->GetStats();
    std::printf("%zu %u %u %.6f %.6f\n",
                delays.size(),
                stats.nTotalDroppedPackets,
                stats.nTotalMarkedPackets,
                delays.empty() ? 0.0 : sum / delays.size(),
                delays.empty() ? 0.0 : delays[delays.size() * 95 / 100]);
    Simulator::Destroy();
    return 0;
}
