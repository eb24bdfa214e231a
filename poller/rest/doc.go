// Package rest reads resources of the commerce data service over HTTP. It decides which days to read, and
// how cheaply.
//
// The service filters by day and pages in an order that it does not promise, and its rows move between pages
// while they are read. So a Source settles whole days. A day that is over is closed when every row that
// stayed in it was read (package paging shows when that is so); everything updated since is the open window,
// which every pass reads again:
//
//	... ----------|----------|----------|----------|-------------------->  updated_at
//	    closed    |  past days, closed in batches  |  open window, no end
//	              settled                          the last day that is over by both clocks, and overlap
//
// A row that leaves a past day has been updated, so it is in the open window, which is read after. Cheap
// polls read only the end of the open window where changes appear, if the service sorts by updates; every
// ten minutes all of it. An order that only looks like that of updates (some rows are pinned to the first
// places, the rest is sorted) cannot be seen before such a row changes. That change is late until all is
// read. Then it stands out of order, and there are no cheap polls as long as it does.
//
//	Source    keeps its knowledge from one read to the next, and plans a read: pass, full, lookup
//	read      one Read: it asks for the pages of a window, one after another, and makes batches of their rows.
//	          To look at pages without handing their rows on, it glances
//	days      the past days that are closed, or could not be closed
//	calendar  which of the service's days are over, and in which zone
//
// A row, page, window or day that the service cannot give stops no other (read.failure). Its set is then not
// whole, so its day stays open, and a full reading or a lookup ends with an error.
//
// A row's way through one read:
//
//	Source.Read    plans, then closes the days that are over and reads the open window
//	read.pages     for each question of a paging.Machine: fetch a page, answer, and hand a full batch on
//	read.answer    parses the rows of a page, and checks whether they are those asked for
//	read.flush     hands the batch on
//
// Package dialect keeps the answers to the open questions of the service's document. The way to the service
// is package client: one key, one rate and one comparison of clocks for all resources.
package rest
