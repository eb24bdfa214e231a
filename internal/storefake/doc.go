// Package storefake is a stand-in for the commerce data service: an independent reading of spec/commerce-data-service.md, so it shares no
// code with what reads the service (a wrong field name would then be wrong on both sides, and pass).
//
// It has one set of rows in memory, served over HTTP, and where a PostgreSQL is given the same orders and order_items in its tables. Every
// change goes through a Tx, which writes PostgreSQL first and memory once that has committed. What the document leaves open is a
// Readings, what goes wrong is a Faults; both may be changed while it runs.
//
// Instants are kept in microseconds, as a real service's database would: PostgreSQL shows all of it, REST the whole second it lies in
// (the document's form has no fraction). Config.WholeSeconds stamps whole seconds, so that both paths print the same instant.
//
// Invented persons only: every address ends in example.com, example.org or example.net.
package storefake
