// Package mixed runs this release and the one before it on one etcd, as an upgrade does: each reads
// what the other wrote, and neither runs what the other runs.
package mixed
