// Package etcd runs the commands of docs/etcd.md, as they stand there, with the etcdctl and etcdutl
// of etcd's own release on a real etcd.
package etcd
