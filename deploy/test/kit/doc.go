// Package kit is what several packages of this module need: the project's root, the built program,
// the sources of other projects.
package kit
