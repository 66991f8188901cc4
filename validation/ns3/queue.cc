// A queue disc of ns-3 by itself in front of a link: arrivals from standard input, fates to
// standard output. For queues.py, which says what is compared.
//
//   queue TYPE RUNS RATE [ATTRIBUTE=VALUE]... < arrivals
//
// A line of arrivals is a time in ns, a size in bytes, whether the packet is ECN-capable, and its
// flow. The output has a line for each: in how many of the runs it was dropped, in how many marked,
// and how long it waited, in ns, all runs together. An attribute with the name of its class is set
// for every object of it, such as those within the queue disc.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
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
    uint32_t flow;
    uint32_t dropped;
    uint32_t marked;
    int64_t waited;
};

class Item : public QueueDiscItem {
  public:
    Item(Ptr<Packet> packet, Arrival &arrival)
        : QueueDiscItem(packet, Address(), 0), m_arrival(arrival) {}
    void AddHeader() override {}
    // A queue disc within another marks, and has the outer one mark again.
    bool Mark() override {
        m_arrival.marked += m_arrival.capable && !m_marked;
        m_marked = m_arrival.capable;
        return m_marked;
    }
    uint32_t Hash(uint32_t) const override { return m_arrival.flow; }
    Arrival &Arrived() const { return m_arrival; }

  private:
    Arrival &m_arrival;
    bool m_marked = false;
};

void Dropped(Ptr<const QueueDiscItem> item) { DynamicCast<const Item>(item)->Arrived().dropped++; }

// The link asks for the next packet when one has left, so the queue disc knows since when it is
// idle.
class Link {
  public:
    Link(Ptr<QueueDisc> queue, int64_t rate) : m_queue(queue), m_rate(rate) {}

    void Arrive(Arrival &arrival) {
        m_queue->Enqueue(Create<Item>(Create<Packet>(arrival.size), arrival));
        if (!m_busy) {
            Serve();
        }
    }

  private:
    void Serve() {
        Ptr<QueueDiscItem> item = m_queue->Dequeue();
        m_busy = item != nullptr;
        if (m_busy) {
            Arrival &arrival = DynamicCast<Item>(item)->Arrived();
            arrival.waited += Simulator::Now().GetNanoSeconds() - arrival.time;
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
    if (argc < 4) {
        std::cerr << "queue TYPE RUNS RATE [ATTRIBUTE=VALUE]... < arrivals\n";
        return 2;
    }
    ObjectFactory factory(argv[1]);
    const int runs = std::atoi(argv[2]);
    const int64_t rate = std::atoll(argv[3]);
    for (int i = 4; i < argc; ++i) {
        const std::string word = argv[i];
        const size_t sign = word.find('=');
        const std::string name = word.substr(0, sign);
        const StringValue value(word.substr(sign + 1));
        if (name.find("::") == std::string::npos) {
            factory.Set(name, value);
        } else {
            Config::SetDefault(name, value);
        }
    }
    std::vector<Arrival> arrivals;
    for (Arrival a{}; std::cin >> a.time >> a.size >> a.capable >> a.flow;) {
        arrivals.push_back(a);
    }
    for (int run = 1; run <= runs; ++run) {
        RngSeedManager::SetRun(run);
        Ptr<QueueDisc> queue = factory.Create<QueueDisc>();
        // Not an attribute; of itself it is the MTU of a device, which there is none of here.
        if (Ptr<FqCoDelQueueDisc> fair = DynamicCast<FqCoDelQueueDisc>(queue)) {
            fair->SetQuantum(1514);
        }
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
        queue->Initialize();
        Link link(queue, rate);
        for (Arrival &arrival : arrivals) {
            Simulator::Schedule(NanoSeconds(arrival.time), &Link::Arrive, &link, std::ref(arrival));
        }
        Simulator::Run();
        Simulator::Destroy();
    }
    for (const Arrival &arrival : arrivals) {
        std::cout << arrival.dropped << ' ' << arrival.marked << ' ' << arrival.waited << '\n';
    }
}
