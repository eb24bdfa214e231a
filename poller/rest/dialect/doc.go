// Package dialect keeps the answers to the questions that the service's document leaves open.
//
// A Property is one question, in a file of its own: its possible values, and the proof of each as a pure
// function of answers. In a Dialect each property is one of
//
//	unknown    the request is made so that either value is safe
//	proven     an answer showed the value. The evidence and its time are kept
//	set        the configuration says so (store.dialect.<property>). It counts more than what earlier reads
//	           have proven, and less than the answers of the read in hand
//
// Proofs are committed with each watermark, and every command begins with it. One service answers all
// resources, so a value that one of them has shown counts for all.
//
// Two rules make a value that is no longer true harmless:
//
//   - A value only chooses how to ask. No day is closed, and no row is taken for absent, because of a value
//     that the answers of the same read have not confirmed. So the value that asks for more (days: other,
//     *_to: midnight) is used at once, and the one that asks for less (*_to: whole) is proven in each read.
//   - An answer that contradicts a value makes it unknown again, or proves another one. The log says so, and
//     the read that met the answer begins again.
//
// A question is a property only if its answer saves requests, or decides how a request is made. These are
// none: the order of rows and the size of pages are learned by the first pages of a read, which has to read
// them anyway; a count of all rows shows itself by the first one that exceeds a page; the number of the first
// page stands in every answer; how the service refuses a page, and whether a cache answers, shows in each
// answer and is used for no other one. That has_more is true for ever takes a source ten pages to see, but it
// may be so of one listing and not of the next: shared, it would be proven and contradicted in turns.
package dialect
