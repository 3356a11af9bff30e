// Package logs writes lines to a place that may not take them: a pipe that nobody reads, a disk that is full. Whoever has a line hands it over
// and goes on. What there is no room for is counted, and a line says how many are missing where they would have been.
//
// Words: a Writer takes lines and a batch is those that are written together. A line that had no room is lost, and counted. A Reserved line has room
// of its own, so that it is not.
package logs
