// Command bench measures what Hooklock costs, beside a bare upstream, nginx (where installed) and
// net/http/httputil.ReverseProxy, in one run.
//
// All of them forward the same 1 KiB POST over the same number of connections to the same upstream,
// in interleaved rounds, so that a busy machine is busy for all of them. Ratios are taken within a
// round, and their median is printed with the smallest and the largest. CPU is what the kernel
// counted for the proxy's processes, utime and stime, divided by the requests of the round.
//
// Then it measures what Hooklock does on a route: duplicates of a settled event and refusals, which
// are decided in the process, and new events, which are a claim and a settle in the embedded etcd;
// then new events on a route with park, and events that are parked at once. At last the upstream
// goes away and comes back, while deliveries of other workflows come.
//
// Every part runs in a process of its own: upstream, load and ReverseProxy are this same program,
// started with -as. They die with it.
package main
