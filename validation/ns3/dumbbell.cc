// TCP transfers from a list over a dumbbell, in ns-3: what Shortlane's simulator is compared with.
//
//     sender 0 --\                              /-- receiver 0
//     sender 1 ---- left router ==== right router ---- receiver 1
//     ...                     bottleneck                ...
//
// One connection a transfer: the sender connects at its time, writes its bytes and closes. The
// list is CSV with the columns start_s,size_bytes, and its transfers take the pairs in turn;
// --out is one row a transfer, and the totals of the run go to standard output as `name,value`.
//
// What ns-3 does unasked, and what is done about it here:
//  * It gives every device an FQ-CoDel unless told otherwise: only the two devices of the
//    bottleneck get a queueing discipline, the others a long device queue.
//  * A device pulls packets out of the discipline ahead of time, into a queue of its own. Here
//    the device is stopped while it transmits, so that the discipline is the whole queue and
//    the packet being sent occupies none of it. Its queue must not wake the discipline too, as
//    3.48's does when the packet being sent has left it.
//  * A PPP header of 2 bytes is sent with every packet: the other side has to count it too.
//  * A sender that has sent all that the receiver's window takes crashes 3.37: the send buffer is
//    smaller than the window, and whole segments, or each write would end in a small one.
//  * Timestamps with an MSS above 1448 would fragment every packet: refused.
//  * Without timestamps it takes the first SYN for the one that was answered, and a timeout may
//    then be half a minute: timestamps are on, as they are by default.
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 5000;
constexpr uint32_t MTU = 1500;
// More than any window of a test: queues that are not under test never drop.
const QueueSize LONG_QUEUE("100000p");

struct Options
{
    std::string flows;
    std::string out;
    uint32_t pairs = 5;
    DataRate accessRate{"100Mbps"};
    Time accessDelay{MilliSeconds(1)};
    DataRate rate{"10Mbps"};
    Time delay{MilliSeconds(1)};
    std::string queue = "fifo";
    uint32_t buffer = 300;
    std::string tcp = "NewReno";
    bool sack = true;
    bool hystart = true;
    bool timestamps = true;
    std::string recovery = "prr";
    uint32_t mss = 1448;
    uint32_t initialWindow = 10;
    uint32_t delayedAck = 2;
    Time delayedAckTimeout{MilliSeconds(200)};
    uint32_t window = 44;
    Time minRto{Seconds(1)};
    Time synTimeout{Seconds(3)};
    Time stop{Seconds(100)};
    uint32_t seed = 1;
};

Options
ReadOptions(int argc, char* argv[])
{
    Options o;
    CommandLine cmd(__FILE__);
    cmd.AddValue("flows", "CSV of transfers: start_s,size_bytes", o.flows);
    cmd.AddValue("out", "CSV to write, one row a transfer (none if empty)", o.out);
    cmd.AddValue("pairs", "Pairs of sender and receiver", o.pairs);
    cmd.AddValue("access-rate", "Rate of the access links", o.accessRate);
    cmd.AddValue("access-delay", "Delay of one access link", o.accessDelay);
    cmd.AddValue("rate", "Rate of the bottleneck", o.rate);
    cmd.AddValue("delay", "Delay of the bottleneck", o.delay);
    cmd.AddValue("queue", "fifo, codel or fq-codel", o.queue);
    cmd.AddValue("buffer", "Packets the queue holds, without the one being sent", o.buffer);
    cmd.AddValue("tcp", "NewReno, LinuxReno or Cubic", o.tcp);
    cmd.AddValue("sack", "Selective acknowledgements", o.sack);
    cmd.AddValue("timestamps", "RFC 7323 timestamps", o.timestamps);
    cmd.AddValue("hystart", "HyStart, if the TCP is Cubic", o.hystart);
    cmd.AddValue("recovery", "prr or classic (RFC 6582)", o.recovery);
    cmd.AddValue("mss", "Bytes of payload in a full segment", o.mss);
    cmd.AddValue("initial-window", "Initial congestion window in segments", o.initialWindow);
    cmd.AddValue("delayed-ack", "Segments to one acknowledgement", o.delayedAck);
    cmd.AddValue("delayed-ack-timeout", "Longest wait for the next segment", o.delayedAckTimeout);
    cmd.AddValue("window", "Most full segments not acknowledged: the send buffer", o.window);
    cmd.AddValue("min-rto", "Least retransmission timeout", o.minRto);
    cmd.AddValue("syn-timeout", "First timeout of a SYN", o.synTimeout);
    cmd.AddValue("stop", "End of the run", o.stop);
    cmd.AddValue("seed", "Of the hash of FQ-CoDel, the only thing left to chance", o.seed);
    cmd.Parse(argc, argv);

    NS_ABORT_MSG_IF(o.pairs == 0 || o.pairs > 10000, "--pairs: 1 to 10000, not " << o.pairs);
    NS_ABORT_MSG_IF(o.buffer == 0, "--buffer: at least 1 packet");
    const uint32_t packet = o.mss + 40 + (o.timestamps ? 12 : 0);
    NS_ABORT_MSG_IF(packet > MTU, "--mss: packets of " << packet << " bytes would be fragmented");
    return o;
}

struct Transfer
{
    uint64_t start; // in nanoseconds
    uint64_t size;
    uint32_t pair;
    uint64_t end = 0; // when the receiver's application has the last byte; 0: not yet
    uint64_t received = 0;
};

std::vector<Transfer>
ReadTransfers(const std::string& path, uint32_t pairs)
{
    std::ifstream in(path);
    NS_ABORT_MSG_IF(!in, "cannot read " << path);
    std::string line;
    std::getline(in, line);
    NS_ABORT_MSG_IF(line != "start_s,size_bytes",
                    path << ":1: found '" << line << "', not start_s,size_bytes");
    std::vector<Transfer> transfers;
    while (std::getline(in, line))
    {
        std::istringstream row(line);
        Transfer t{};
        double start = -1;
        char comma;
        row >> start >> comma >> t.size;
        NS_ABORT_MSG_IF(!row || !row.eof() || start < 0 || t.size == 0,
                        path << ":" << transfers.size() + 2 << ": found '" << line << "'");
        t.start = std::llround(start * 1e9);
        t.pair = transfers.size() % pairs;
        transfers.push_back(t);
    }
    return transfers;
}

void
SetDefaults(const Options& o)
{
    NS_ABORT_MSG_IF(o.tcp != "NewReno" && o.tcp != "LinuxReno" && o.tcp != "Cubic",
                    "--tcp: NewReno, LinuxReno or Cubic, not " << o.tcp);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::Tcp" + o.tcp)));
    NS_ABORT_MSG_IF(o.recovery != "prr" && o.recovery != "classic",
                    "--recovery: prr or classic, not " << o.recovery);
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(o.recovery == "prr" ? TcpPrrRecovery::GetTypeId()
                                                       : TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(o.mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.initialWindow));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.delayedAck));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(o.delayedAckTimeout));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(o.window * o.mss));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue((o.window + 1) * o.mss));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(o.synTimeout));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(o.minRto));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(o.sack));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(o.hystart));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(o.timestamps));
}

// Stops the layer above while the device transmits: it then holds no packet but the one being
// sent, and asks the discipline for the next one when the last bit of that has left.
void
HoldWhileSending(Ptr<NetDevice> device)
{
    auto control = CreateObject<NetDeviceQueueInterface>();
    device->AggregateObject(control);
    auto queue = control->GetTxQueue(0);
    std::function<void(Ptr<const Packet>)> begin = [queue](Ptr<const Packet>) { queue->Stop(); };
    std::function<void(Ptr<const Packet>)> end = [queue](Ptr<const Packet>) { queue->Wake(); };
    device->TraceConnectWithoutContext("PhyTxBegin", Callback<void, Ptr<const Packet>>(begin));
    device->TraceConnectWithoutContext("PhyTxEnd", Callback<void, Ptr<const Packet>>(end));
}

class Dumbbell
{
  public:
    explicit Dumbbell(const Options& o)
    {
        routers.Create(2);
        senders.Create(o.pairs);
        receivers.Create(o.pairs);
        InternetStackHelper internet;
        Ipv4StaticRoutingHelper staticRouting;
        internet.SetRoutingHelper(staticRouting);
        internet.SetIpv6StackInstall(false);
        internet.InstallAll();

        PointToPointHelper link;
        link.DisableFlowControl(); // HoldWhileSending does it; with it goes the FQ-CoDel
        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize("1p")));
        link.SetDeviceAttribute("DataRate", DataRateValue(o.rate));
        link.SetDeviceAttribute("Mtu", UintegerValue(MTU));
        link.SetChannelAttribute("Delay", TimeValue(o.delay));
        auto bottleneck = link.Install(routers);
        HoldWhileSending(bottleneck.Get(0));
        HoldWhileSending(bottleneck.Get(1));
        forward = Discipline(o).Install(bottleneck.Get(0)).Get(0);
        TrafficControlHelper fifo;
        fifo.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(LONG_QUEUE));
        backward = fifo.Install(bottleneck.Get(1)).Get(0);

        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(LONG_QUEUE));
        link.SetDeviceAttribute("DataRate", DataRateValue(o.accessRate));
        link.SetChannelAttribute("Delay", TimeValue(o.accessDelay));
        Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
        auto middle = addresses.Assign(bottleneck);
        for (int side = 0; side < 2; side++)
        {
            auto& hosts = side == 0 ? senders : receivers;
            auto router = routers.Get(side);
            for (uint32_t i = 0; i < o.pairs; i++)
            {
                auto devices = link.Install(hosts.Get(i), router);
                addresses.NewNetwork();
                auto interfaces = addresses.Assign(devices);
                staticRouting.GetStaticRouting(hosts.Get(i)->GetObject<Ipv4>())
                    ->SetDefaultRoute(interfaces.GetAddress(1), 1);
                if (side == 1)
                {
                    destinations.push_back(interfaces.GetAddress(0));
                }
            }
            // The way to the other side is the bottleneck; interface 1 is its device.
            staticRouting.GetStaticRouting(router->GetObject<Ipv4>())
                ->SetDefaultRoute(middle.GetAddress(1 - side), 1);
        }
    }

    // Transmissions on all links: three for a packet that arrives, one for a packet dropped.
    uint64_t
    Hops() const
    {
        const auto& there = forward->GetStats();
        const auto& back = backward->GetStats();
        return 3 * (there.nTotalSentPackets + back.nTotalSentPackets) +
               there.nTotalDroppedPackets;
    }

    NodeContainer routers;
    NodeContainer senders;
    NodeContainer receivers;
    std::vector<Ipv4Address> destinations;
    Ptr<QueueDisc> forward;
    Ptr<QueueDisc> backward;

  private:
    static TrafficControlHelper
    Discipline(const Options& o)
    {
        const QueueSizeValue limit(QueueSize(QueueSizeUnit::PACKETS, o.buffer));
        TrafficControlHelper helper;
        if (o.queue == "fifo")
        {
            helper.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", limit);
        }
        else if (o.queue == "codel")
        {
            helper.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", limit);
        }
        else if (o.queue == "fq-codel")
        {
            helper.SetRootQueueDisc("ns3::FqCoDelQueueDisc",
                                    "MaxSize",
                                    limit,
                                    "Perturbation",
                                    UintegerValue(o.seed));
        }
        else
        {
            NS_ABORT_MSG("--queue: fifo, codel or fq-codel, not " << o.queue);
        }
        return helper;
    }
};

// Starts the transfers, one event ahead at a time, and notes when they end.
class Transfers
{
  public:
    Transfers(const Dumbbell& net, std::vector<Transfer> list)
        : net(net),
          list(std::move(list))
    {
        for (uint32_t pair = 0; pair < net.receivers.GetN(); pair++)
        {
            auto socket =
                Socket::CreateSocket(net.receivers.Get(pair), TcpSocketFactory::GetTypeId());
            socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
            socket->Listen();
            socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Transfers::Accepted, this));
            listeners.push_back(socket);
        }
        for (size_t index = 0; index < this->list.size(); index++)
        {
            Simulator::Schedule(NanoSeconds(this->list[index].start),
                                &Transfers::Start,
                                this,
                                index);
        }
    }

    void
    Write(const std::string& path) const
    {
        std::ofstream out(path);
        out << "index,start_ns,end_ns,size_bytes,received_bytes,complete\n";
        for (size_t index = 0; index < list.size(); index++)
        {
            const auto& t = list[index];
            out << index << ',' << t.start << ',' << t.end << ',' << t.size << ',' << t.received
                << ',' << (t.received == t.size) << '\n';
        }
        NS_ABORT_MSG_IF(!out.flush(), "cannot write " << path);
    }

    uint64_t complete = 0;
    uint64_t failed = 0;

  private:
    void
    Start(size_t index)
    {
        const auto& t = list[index];
        auto node = net.senders.Get(t.pair);
        auto socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        socket->Bind();
        Address local;
        socket->GetSockName(local);
        waiting[{t.pair, InetSocketAddress::ConvertFrom(local).GetPort()}] = index;
        auto left = std::make_shared<uint64_t>(t.size);
        std::function<void(Ptr<Socket>)> established = [left](Ptr<Socket> s) { Fill(s, *left); };
        std::function<void(Ptr<Socket>, uint32_t)> space = [left](Ptr<Socket> s, uint32_t) {
            Fill(s, *left);
        };
        std::function<void(Ptr<Socket>)> failure = [this](Ptr<Socket>) { failed++; };
        socket->SetConnectCallback(Callback<void, Ptr<Socket>>(established),
                                   Callback<void, Ptr<Socket>>(failure));
        socket->SetSendCallback(Callback<void, Ptr<Socket>, uint32_t>(space));
        socket->Connect(InetSocketAddress(net.destinations[t.pair], PORT));
    }

    // Writes what the send buffer takes, and closes behind the last byte.
    static void
    Fill(Ptr<Socket> socket, uint64_t& left)
    {
        while (left > 0)
        {
            const uint64_t room = std::min<uint64_t>(left, socket->GetTxAvailable());
            if (room == 0 || socket->Send(Create<Packet>(static_cast<uint32_t>(room))) <= 0)
            {
                return;
            }
            left -= room;
            if (left == 0)
            {
                socket->Close();
            }
        }
    }

    void
    Accepted(Ptr<Socket> socket, const Address& from)
    {
        const auto peer = InetSocketAddress::ConvertFrom(from);
        const auto key = std::make_pair(Pair(socket->GetNode()), peer.GetPort());
        const size_t index = waiting.at(key);
        waiting.erase(key);
        std::function<void(Ptr<Socket>)> read = [this, index](Ptr<Socket> s) { Read(s, index); };
        std::function<void(Ptr<Socket>)> close = [](Ptr<Socket> s) { s->Close(); };
        std::function<void(Ptr<Socket>)> error = [](Ptr<Socket>) {};
        socket->SetRecvCallback(Callback<void, Ptr<Socket>>(read));
        socket->SetCloseCallbacks(Callback<void, Ptr<Socket>>(close),
                                  Callback<void, Ptr<Socket>>(error));
    }

    void
    Read(Ptr<Socket> socket, size_t index)
    {
        auto& t = list[index];
        while (auto packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            t.received += packet->GetSize();
        }
        if (t.received == t.size && t.end == 0)
        {
            t.end = Simulator::Now().GetNanoSeconds();
            complete++;
        }
    }

    uint32_t
    Pair(Ptr<Node> receiver) const
    {
        return receiver->GetId() - net.receivers.Get(0)->GetId();
    }

    const Dumbbell& net;
    std::vector<Transfer> list;
    std::vector<Ptr<Socket>> listeners;
    std::map<std::pair<uint32_t, uint16_t>, size_t> waiting; // by pair and port
};

rusage
Used()
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used;
}

double
CpuSeconds()
{
    const auto used = Used();
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

} // namespace

int
main(int argc, char* argv[])
{
    const Options options = ReadOptions(argc, argv);
    SetDefaults(options);
    Dumbbell net(options);
    Transfers transfers(net, ReadTransfers(options.flows, options.pairs));

    const double before = CpuSeconds();
    Simulator::Stop(options.stop);
    Simulator::Run();
    const double cpu = CpuSeconds() - before;

    if (!options.out.empty())
    {
        transfers.Write(options.out);
    }
    const auto& stats = net.forward->GetStats();
    std::cout << std::setprecision(9) << "complete," << transfers.complete << "\nfailed,"
              << transfers.failed << "\narrived," << stats.nTotalReceivedPackets << "\ndropped,"
              << stats.nTotalDroppedPackets << "\nsent_bytes," << stats.nTotalSentBytes
              << "\nhops," << net.Hops() << "\nevents," << Simulator::GetEventCount()
              << "\ncpu_s," << cpu << "\npeak_kib," << Used().ru_maxrss << '\n';
    Simulator::Destroy();
    return 0;
}
