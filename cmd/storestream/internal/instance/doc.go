// Package instance is a running storestream: a member of the group, which polls and publishes the resources
// that fall to it.
//
//	the group ──gives a resource──> instance ──runs──> owner (one of each resource)
//	                                                     | confirm, take, rebuild, then poll
//	monitor ──asks the group, reads the topics──>        v
//	     \───────────────> the page and the metrics <── live
//
// An owner keeps its resource polled while it belongs to this instance: takeover after takeover, until the
// group takes the resource away or the instance stops. The monitor follows the other instances, and sets
// the metrics of the resources that are not polled here.
//
// Order of the start: sources, owners, monitor, and then the group is joined. The stop is the reverse, in
// three steps, so that each owner can commit its batch in hand:
//
//  1. No resource is begun any more. Every owner's context ends with poller.ErrStopping. The owner then
//     finishes and commits the batch in hand, for 20 s at most.
//  2. The instance leaves the group, so that the others need not wait for its session to time out.
//  3. The monitor ends, and the sources are closed.
package instance
