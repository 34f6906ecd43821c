// A controller in Go: it decreases at 10 % loss and else increases by 5 % per second.
package main

import (
	"encoding/json"
	"os"
)

type limits struct {
	Start float64 `json:"start_bps"`
	Min   float64 `json:"min_bps"`
	Max   float64 `json:"max_bps"`
}
type packet struct {
	Arrival *int64 `json:"arrival_ns"`
}
type event struct {
	limits
	Type    string   `json:"type"`
	At      int64    `json:"at_ns"`
	Packets []packet `json:"packets"`
	Setup   *limits  `json:"setup"`
}
type message struct {
	Type   string  `json:"type"`
	Setup  limits  `json:"setup"`
	Events []event `json:"events"`
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	out.Encode(map[string]any{"protocol": 1, "summary": "AIMD in Go", "signals": []any{map[string]any{"name": "loss"}}})
	var rate float64
	var setup limits
	last := int64(-1) // the time of the last feedback; before the first, none
	for {
		var m message
		if in.Decode(&m) != nil {
			return
		}
		signals := map[string]float64{}
		if m.Type == "start" {
			setup, rate = m.Setup, m.Setup.Start
		}
		for _, e := range m.Events {
			switch {
			case e.Type == "feedback" && len(e.Packets) > 0:
				lost := 0.0
				for _, p := range e.Packets {
					if p.Arrival == nil {
						lost++
					}
				}
				loss := lost / float64(len(e.Packets))
				if last < 0 {
					last = e.At
				}
				if loss > 0.1 {
					rate *= 1 - loss/2
				} else {
					rate *= 1 + 0.05*float64(e.At-last)/1e9
				}
				last, signals["loss"] = e.At, loss
			case e.Type == "bounds":
				setup.Min, setup.Max = e.Min, e.Max
			case e.Type == "route":
				setup = *e.Setup
			}
			rate = min(max(rate, setup.Min), setup.Max)
		}
		out.Encode(map[string]any{"target_bps": uint64(rate + 0.5), "signals": signals})
	}
}
