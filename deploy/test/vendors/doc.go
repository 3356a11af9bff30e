// Package vendors is a Go module of its own: it holds the samples of senders against the senders'
// own libraries, which the product does not need. Those that are Node packages are looked for in
// npm/node_modules (npm install --ignore-scripts in npm/), and skipped where they are missing.
package vendors
