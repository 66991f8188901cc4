/*
 * The lock of all journals is a directory that goes with the last of them: crates/engine/src/kernel/
 * journal.rs, lock() and Drop. Whoever locked a directory that was removed meanwhile has locked nothing.
 *
 * Bounds: three commands of two turns each, so at most six directories one after the other.
 */

#ifndef PLANT
#define PLANT 0
#endif
#define COMMANDS 3
#define TURNS 2
#define MOST (COMMANDS * TURNS + 1)

/* The directory by that name: 0 for none, else its inode number. */
byte named = 0;
byte next = 1;
bool held[MOST + 1];
bool has_journal = false;
byte inside = 0;

proctype command() {
	byte mine;
	byte turn = 0;
	do
	:: turn == TURNS -> break
	:: turn < TURNS ->
again:
		/* mkdir, or it is there */
		if
		:: atomic { named == 0 -> assert(next <= MOST); named = next; next++ }
		:: named != 0
		fi;
		/* open */
		if
		:: atomic { named != 0 -> mine = named }
		:: named == 0 -> goto again
		fi;
		/* flock; it goes with its process as well */
		atomic { !held[mine] -> held[mine] = true };
#if PLANT != 1
		/* is it still the one? */
		if
		:: named != mine -> held[mine] = false; goto again
		:: named == mine
		fi;
#endif
		inside++;
		assert(inside == 1);
		/* attach writes a journal, detach removes it */
		if
		:: has_journal = true
		:: has_journal = false
		fi;
		inside--;
#if PLANT == 2
		held[mine] = false;
#endif
		/* Drop: rmdir fails while there is a journal */
		atomic {
			if
			:: !has_journal && named != 0 -> named = 0
			:: else
			fi
		};
#if PLANT != 2
		held[mine] = false;
#endif
		turn++
	od
}

init {
	byte i;
	atomic {
		for (i : 1 .. COMMANDS) {
			run command()
		}
	}
}
