// Package rest reads resources of the commerce data service over HTTP.
//
// The service filters by day, pages in an order that it does not promise, and its rows move between pages while they are read. A Source
// therefore settles whole days. A day that is over is closed when every row that stayed in it was read: by answers that hold a whole window at one
// instant, or by passes over pages that can be shown to have met every row (closing.go, which is apart from HTTP so that it can be checked against
// drawn interleavings). Everything updated since is read again and again (pass.go), cheaply where the service's order allows it (newest.go).
//
// A Client is the one way to the service: one key, one rate and one comparison of clocks for all resources.
package rest
