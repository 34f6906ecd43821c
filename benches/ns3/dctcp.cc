// Bulk flows of DCTCP or TCP Prague in ns-3 through a queue that marks above a threshold, and prints what they did.
//
// c++ -O2 -std=c++17 dctcp.cc -o dctcp -Wl,--allow-shlib-undefined -lns3-applications -lns3-point-to-point -lns3-traffic-control \
//     -lns3-internet -lns3-network -lns3-core
// ./dctcp FLOWS RATE_MBPS RTT_MS THRESHOLD_PACKETS SECONDS [TcpPrague]
//
// TcpPrague needs a fork of ns-3 that has it: branch l4s-sims of AlexandruTabacaru/ns-3-dev-git-rp (3.40). Its RTT independence begins
// after 500 rounds, as in the draft.
//
// The access links have 100 times the rate. RED with equal thresholds and a weight of 1 is a step on the instantaneous queue. The output
// is one line: use of the link, mean and 95th percentile of the waiting time in ms, share of marked packets, drops, and Jain's index; each
// from a quarter of the time on.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace ns3;

int
main(int argc, char** argv)
{
    const int flows = std::stoi(argv[1]);
    const double rate = std::stod(argv[2]) * 1e6;
    const double rtt = std::stod(argv[3]) * 1e-3;
    const int threshold = std::stoi(argv[4]);
    const double seconds = std::stod(argv[5]);
    const double from = seconds / 4;

    const std::string control = argc > 6 ? argv[6] : "TcpDctcp";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + control));
    Config::SetDefaultFailSafe("ns3::TcpPrague::RttTransitionDelay", UintegerValue(500));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 24));
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(false));

    NodeContainer senders, receivers, routers;
    senders.Create(flows);
    receivers.Create(flows);
    routers.Create(2);
    InternetStackHelper stack;
    stack.InstallAll();

    PointToPointHelper access, bottleneck;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 100))));
    access.SetChannelAttribute("Delay", TimeValue(Seconds(0)));
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
    bottleneck.SetChannelAttribute("Delay", TimeValue(Seconds(rtt / 2)));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));

    Ipv4AddressHelper address;
    address.SetBase("10.0.0.0", "255.255.255.0");
    NetDeviceContainer between = bottleneck.Install(routers);
    TrafficControlHelper marks, none;
    marks.SetRootQueueDisc("ns3::RedQueueDisc",
                           "UseEcn", BooleanValue(true),
                           "UseHardDrop", BooleanValue(false),
                           "Gentle", BooleanValue(false),
                           "QW", DoubleValue(1),
                           "MeanPktSize", UintegerValue(1500),
                           "MinTh", DoubleValue(threshold),
                           "MaxTh", DoubleValue(threshold),
                           "LinkBandwidth", DataRateValue(DataRate(uint64_t(rate))),
                           "MaxSize", StringValue("2000p"));
    Ptr<QueueDisc> queue = marks.Install(between.Get(0)).Get(0);
    address.Assign(between);

    std::vector<Ptr<PacketSink>> sinks;
    for (int n = 0; n < flows; ++n)
    {
        NetDeviceContainer in = access.Install(senders.Get(n), routers.Get(0));
        NetDeviceContainer out = access.Install(routers.Get(1), receivers.Get(n));
        address.NewNetwork();
        address.Assign(in);
        address.NewNetwork();
        Ipv4Address to = address.Assign(out).GetAddress(1);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        sinks.push_back(sink.Install(receivers.Get(n)).Get(0)->GetObject<PacketSink>());
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to, 9));
        bulk.Install(senders.Get(n)).Start(MilliSeconds(1 + 3 * n));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<double> waits;
    queue->TraceConnectWithoutContext("SojournTime", Callback<void, Time>([&](Time wait) {
        if (Simulator::Now().GetSeconds() >= from)
            waits.push_back(wait.GetSeconds() * 1e3);
    }));
    std::vector<uint64_t> before(flows);
    uint32_t marked = 0, left = 0, dropped = 0;
    Simulator::Schedule(Seconds(from), [&] {
        for (int n = 0; n < flows; ++n)
            before[n] = sinks[n]->GetTotalRx();
        marked = queue->GetStats().nTotalMarkedPackets;
        left = queue->GetStats().nTotalDequeuedPackets;
        dropped = queue->GetStats().nTotalDroppedPackets;
    });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();

    double sum = 0, squares = 0;
    for (int n = 0; n < flows; ++n)
    {
        double bits = 8.0 * (sinks[n]->GetTotalRx() - before[n]);
        sum += bits;
        squares += bits * bits;
    }
    std::sort(waits.begin(), waits.end());
    double mean = 0;
    for (double wait : waits)
        mean += wait / waits.size();
    QueueDisc::Stats stats = queue->GetStats();
    std::printf("%.4f %.3f %.3f %.5f %u %.4f\n",
                sum / 1448 * 1500 / (rate * (seconds - from)),
                mean,
                waits[waits.size() * 95 / 100],
                double(stats.nTotalMarkedPackets - marked) / (stats.nTotalDequeuedPackets - left),
                stats.nTotalDroppedPackets - dropped,
                sum * sum / (flows * squares));
}
