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
// A question is a property only if its answer saves requests, or decides how a request is made. So these are
// no properties:
//
//   - The order of rows and the size of pages: a read learns them from its first pages, which it needs
//     anyway.
//   - Whether a count is of all rows: the first count that exceeds a page shows it.
//   - The number of the first page: every answer has it.
//   - How the service refuses a page, and whether a cache answers: each answer shows it, and it is used for
//     no other answer.
//   - Whether has_more is always true: a source needs ten pages to see it. But it may be so for one listing
//     and not for the next. If sources shared it, it would be proven and contradicted in turns.
package dialect
