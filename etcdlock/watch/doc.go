// Package watch wakes the waiters of this process when the keys that they wait for are gone, with one watch of each kind of key for all of them.
package watch
