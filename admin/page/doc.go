// Package page serves the web page of the admin listener: what needs attention, what runs, and what
// happened to any event.
//
// The page is a client of the admin API in the same process. Each screen asks the API's handler
// with the visitor's token, so the API alone decides what a visitor may see and do. A screen is a
// list of sections, rendered to HTML by the templates here. A small script fetches screens and
// sends changes, because a browser sends no token by itself.
//
// A new column is one line in the columns of a table, a new section one in its screen, and a new
// screen one in allScreens.
package page
