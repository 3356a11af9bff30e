// Package proxy carries one delivery to the upstream and its answer back: it finds the route, copies the delivery once, builds its
// name tag, asks the gate, makes one exact attempt upstream, and turns whatever happened into one answer.
//
// handler.go tells the story from top to bottom. The package sees no store: what may run is decided behind the Gate.
package proxy
