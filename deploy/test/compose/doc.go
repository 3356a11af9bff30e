// Package compose runs what the compose file of deploy/compose puts into containers, without the
// containers: its configurations are taken as they are, but for addresses.
package compose
