// Package view is what a process knows, without asking etcd, of the executions that wait over all
// processes, and of what they wait for.
package view
