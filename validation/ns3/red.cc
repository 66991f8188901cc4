// A queue disc of ns-3 by itself in front of a link: arrivals from standard input, fates to
// standard output. For red.py, which says what is compared.
//
//   red RUNS RATE LIMIT MIN MAX MAX_P WEIGHT MEAN_PACKET GENTLE WAIT ECN < arrivals
//
// A line of arrivals is a time in ns, a size in bytes and whether the packet is ECN-capable. The
// output has a line for each: in how many of the runs it was dropped, and in how many marked.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

struct Arrival {
    int64_t time;
    uint32_t size;
    bool capable;
    uint32_t dropped;
    uint32_t marked;
};

class Item : public QueueDiscItem {
  public:
    Item(Ptr<Packet> packet, Arrival &arrival)
        : QueueDiscItem(packet, Address(), 0), m_arrival(arrival) {}
    void AddHeader() override {}
    bool Mark() override {
        m_arrival.marked += m_arrival.capable;
        return m_arrival.capable;
    }

  private:
    Arrival &m_arrival;
};

// The link asks for the next packet when one has left, so the queue disc knows since when it is
// idle.
class Link {
  public:
    Link(Ptr<QueueDisc> queue, int64_t rate) : m_queue(queue), m_rate(rate) {}

    void Arrive(Arrival &arrival) {
        Ptr<Item> item = Create<Item>(Create<Packet>(arrival.size), arrival);
        arrival.dropped += !m_queue->Enqueue(item);
        if (!m_busy) {
            Serve();
        }
    }

  private:
    void Serve() {
        Ptr<QueueDiscItem> item = m_queue->Dequeue();
        m_busy = item != nullptr;
        if (m_busy) {
            int64_t span = int64_t(item->GetSize()) * 8000000000 / m_rate;
            Simulator::Schedule(NanoSeconds(span), &Link::Serve, this);
        }
    }

    Ptr<QueueDisc> m_queue;
    int64_t m_rate;
    bool m_busy = false;
};

} // namespace

int main(int argc, char *argv[]) {
    if (argc != 12) {
        std::cerr << "red RUNS RATE LIMIT MIN MAX MAX_P WEIGHT MEAN_PACKET GENTLE WAIT ECN\n";
        return 2;
    }
    const int runs = std::atoi(argv[1]);
    const int64_t rate = std::atoll(argv[2]);
    std::vector<Arrival> arrivals;
    for (Arrival a{}; std::cin >> a.time >> a.size >> a.capable;) {
        arrivals.push_back(a);
    }
    for (int run = 1; run <= runs; ++run) {
        RngSeedManager::SetRun(run);
        Ptr<RedQueueDisc> queue = CreateObject<RedQueueDisc>();
        queue->SetAttribute("MaxSize", StringValue(std::string(argv[3]) + "p"));
        queue->SetAttribute("MinTh", DoubleValue(std::atof(argv[4])));
        queue->SetAttribute("MaxTh", DoubleValue(std::atof(argv[5])));
        queue->SetAttribute("LInterm", DoubleValue(1 / std::atof(argv[6])));
        queue->SetAttribute("QW", DoubleValue(std::atof(argv[7])));
        queue->SetAttribute("MeanPktSize", UintegerValue(std::atoi(argv[8])));
        queue->SetAttribute("IdlePktSize", UintegerValue(0));
        queue->SetAttribute("LinkBandwidth", DataRateValue(DataRate(rate)));
        queue->SetAttribute("LinkDelay", TimeValue(MilliSeconds(20)));
        queue->SetAttribute("Gentle", BooleanValue(std::atoi(argv[9])));
        queue->SetAttribute("Wait", BooleanValue(std::atoi(argv[10])));
        queue->SetAttribute("UseEcn", BooleanValue(std::atoi(argv[11])));
        queue->Initialize();
        Link link(queue, rate);
        for (Arrival &arrival : arrivals) {
            Simulator::Schedule(NanoSeconds(arrival.time), &Link::Arrive, &link, std::ref(arrival));
        }
        Simulator::Run();
        Simulator::Destroy();
    }
    for (const Arrival &arrival : arrivals) {
        std::cout << arrival.dropped << ' ' << arrival.marked << '\n';
    }
}
