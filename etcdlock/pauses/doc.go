// Package pauses knows the pauses that are in force, as far as this process knows, and acknowledges them in the key of its session.
package pauses
