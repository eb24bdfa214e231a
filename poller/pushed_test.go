package poller

import "iter"

// pushed is what read hands to emit, as an iterator. emit returns an error if the caller has broken off.
func pushed(read func(emit func(Batch) error) error) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		stopped := false
		err := read(func(b Batch) error {
			if stopped = stopped || !yield(b, nil); stopped {
				return errBrokenOff
			}
			return nil
		})
		if err != nil && !stopped {
			yield(Batch{}, err)
		}
	}
}
