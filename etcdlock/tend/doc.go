// Package tend does for an operator what must be done to the members of an etcd one after the
// other, in an order in which the sessions of Hooklock live on.
package tend
