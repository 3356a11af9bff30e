// Package cluster is what the fault suite breaks: real processes of etcd and of Hooklock, a TCP
// connection between them that can be disturbed at a chosen request, an upstream that follows a
// script and checks fencing tokens, and senders.
//
// Moments are found by events (a request that passes, a key that appears in etcd, a line in a log),
// never by waiting for a while. Every process that is started here dies with the test, however that
// ends.
package cluster
