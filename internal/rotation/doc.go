// Package rotation keeps what files hold up to date while the program runs: passwords, tokens, keys,
// certificates. Whoever replaces such a file need not restart anything.
//
// The files are read where what they hold is used: at each login, handshake or request. Files of this size
// take microseconds, and so nobody has to guess from times and inodes whether one has changed, no watch can
// be lost when a folder is swapped (Kubernetes moves a symbolic link, ..data), and a credential that was
// refused is another one at the next try. Only what has changed is parsed.
//
//	Get -- reads the files --> as before: the value as before
//	                           others, and good: the new value, from now on
//	                           not good: the last good value, and a warning, once; a token that lets
//	                           others in is refused
//
// What is not good: a file that is missing, empty, too large, no file (a pipe would make whoever reads it
// wait), or does not keep the setting's rule; certificates that are cut off in the middle; a
// certificate and a key that do not belong together, because only one of them was written yet. Two files that
// are read while a folder is swapped may be of both folders, so what does not fit is read again before it is
// called wrong.
//
// What nobody has asked for in a while is read every ten seconds too (Follow): a file that is broken is told
// before it is needed, and before a restart would fail by it.
package rotation
