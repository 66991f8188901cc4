/*
 * What the commands of the kernel engine and of marks do to two devices that share an offload, and what
 * they write into journals before: crates/engine/src/kernel/{attach,journal,offloads}.rs.
 *
 * Two commands run side by side, each killed before any of its steps or not; meanwhile somebody else may
 * remove a qdisc or put another one there. Then a command that nobody disturbs detaches both devices:
 * everything has to be as it was before, or as somebody else has left it.
 *
 * Bounds: two devices, two commands and the one that tidies up, KILLS kills, MEDDLES changes by others.
 */

#ifndef KILLS
#define KILLS 2
#endif
#ifndef MEDDLES
#define MEDDLES 1
#endif
#ifndef PLANT
#define PLANT 0
#endif

/* A root qdisc: the kernel's default, somebody's, ours. */
mtype = { standard, configured, ours };

mtype root[2];
mtype before[2];
/* Whether the offload that both devices share is as it was. */
bool offload = true;

/* What stands on disk for each device; written in one piece, by a rename. */
typedef Journal {
	bool written;
	mtype former;
	bool switched;
};
Journal journal[2];

bool meddled[2];
byte kills = KILLS;
byte meddles = MEDDLES;
bool locked = false;
byte ended = 0;

/* Whether a device has the offload off for its own sake. */
#define needed(d) (journal[d].written && journal[d].switched)

/* Nothing is changed that is not noted. */
#define noted (offload || journal[0].switched || journal[1].switched)
#define kept(d) (root[d] != ours || before[d] == standard || meddled[d] || journal[d].written)

/* Here the command may be killed; the system lets go of its lock. */
inline step() {
	assert(noted && kept(0) && kept(1));
	if
	:: kills > 0 -> kills--; goto killed
	:: true
	fi
}

/* restore(): a device as its journal says that it was. */
inline restore(d) {
	if
	:: root[d] == configured /* somebody's, or put back already */
	:: root[d] != configured && journal[d].written && journal[d].former == configured ->
		root[d] = configured
	:: root[d] == ours && !(journal[d].written && journal[d].former == configured) ->
		root[d] = standard
	:: root[d] == standard && !(journal[d].written && journal[d].former == configured)
	fi;
#if PLANT == 1
	journal[d].written = false;
	step();
#endif
	step();
	if
#if PLANT == 2
	:: journal[d].switched -> offload = true
	:: !journal[d].switched
#else
	:: journal[d].switched && !needed(1 - d) -> offload = true
	:: else
#endif
	fi;
	step();
	journal[d].written = false;
	journal[d].former = standard;
	journal[d].switched = false;
}

/* tidy_up(): what killed commands, and qdiscs that somebody removed, have left changed. */
inline tidy_up() {
	if
	:: journal[0].written && root[0] != ours -> restore(0); step()
	:: else
	fi;
	if
	:: journal[1].written && root[1] != ours -> restore(1); step()
	:: else
	fi
}

inline lock() {
	atomic { !locked -> locked = true }
}

proctype attach(byte d; bool replace) {
	mtype former;
	bool anew, switches, had;
	lock();
	step();
	tidy_up();
	had = journal[d].switched;
	/* plan(): what is there, and what is to be switched. */
	anew = root[d] == ours;
	if
	:: anew && !replace -> goto refused
	:: anew && replace -> former = journal[d].former
	:: !anew -> former = root[d]
	fi;
	if
	:: former == configured && !replace -> goto refused
	:: else
	fi;
	if
	:: switches = true
	:: switches = false /* --keep-offloads */
	fi;
#if PLANT != 3
	/* Noted before it is done: what it has switched, and what it may. */
	d_step {
		journal[d].former = former;
		journal[d].switched = journal[d].switched || switches;
		journal[d].written = true
	};
	step();
#endif
	if
	:: root[d] = ours
	:: true -> /* The kernel refuses. */
		if
#if PLANT != 4
		:: !anew -> restore(d)
#else
		:: !anew
#endif
#if PLANT == 5
		:: anew
#else
		:: anew -> journal[d].switched = had
#endif
		fi;
		assert(anew || !journal[d].written);
		goto refused
	fi;
	step();
#if PLANT == 3
	d_step {
		journal[d].former = former;
		journal[d].switched = journal[d].switched || switches;
		journal[d].written = true
	};
	step();
#endif
	/* settle(): switches what is wanted, puts back what no longer is, notes it. */
	if
	:: switches -> offload = false
	:: !switches && journal[d].switched && !needed(1 - d) -> offload = true
	:: else
	fi;
	step();
	journal[d].switched = switches;
refused:
killed:
	locked = false;
	ended++
}

proctype detach(byte d) {
	lock();
	step();
	tidy_up();
	if
	:: root[d] == ours -> restore(d)
	:: else
	fi;
killed:
	locked = false;
	ended++
}

/* With tc, whenever it likes, without our lock. */
proctype somebody(byte d) {
	do
	:: meddles > 0 -> atomic {
		meddles--;
		meddled[d] = true;
		if
		:: root[d] == ours -> root[d] = standard
		:: root[d] = configured
		fi
	}
	:: break
	od
}

init {
	byte d;
	for (d : 0 .. 1) {
		if
		:: root[d] = standard
		:: root[d] = configured
		fi;
		before[d] = root[d];
		journal[d].former = standard
	};
	if
	:: run attach(0, false)
	:: run attach(0, true)
	:: run detach(0)
	fi;
	if
	:: run attach(0, true)
	:: run attach(1, true)
	:: run detach(0)
	:: run detach(1)
	fi;
	run somebody(0);
	ended == 2;
	/* What is attached has what it needs. */
	for (d : 0 .. 1) {
		assert(kills < KILLS || root[d] != ours || !journal[d].switched || !offload)
	};
	/* Nobody kills the next command; it finds both devices, one after the other. */
	kills = 0;
	meddles = 0;
	run detach(0);
	ended == 3;
	run detach(1);
	ended == 4;
	for (d : 0 .. 1) {
		assert(!journal[d].written);
		assert(root[d] != ours);
		assert(meddled[d] || root[d] == before[d])
	};
	assert(offload)
}

#ifdef SEEN
/* Whether a state that was seen is one of the model's. */
active proctype seen() {
end:
	atomic { (SEEN) -> assert(false) }
}
#endif
