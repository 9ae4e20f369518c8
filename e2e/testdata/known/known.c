// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A module with a function that changes a structure and an output argument, calls
 * itself, lets other threads run, and whose thread may end in it. The module notes
 * what it finds before and after each call, as the compiler reads it.
 *
 * Writing a struct order to /dev/known makes calls; reading it returns their struct
 * copy, in the order in which the calls began. Opening it forgets all calls.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

struct known_part {
	u8 kind;
	struct {
		s64 sum;
		u32 words[3];
	} deep;
	union {
		u32 id;
		u16 half[2];
	};
};

struct known {
	int number;
	unsigned int low : 3;
	unsigned int mid : 7;
	int high : 13;
	u64 wide : 37;
	u16 list[5];
	struct known_part part;
	char name[8];
};

#define MEMBERS 19
#define COPIES 32768
#define DEPTH 8

struct copy {
	u64 returned; /* whether the call has returned */
	s64 result;
	s64 out[2]; /* before and after, as all pairs here */
	s64 members[2][MEMBERS];
};

struct order {
	u32 calls;  /* that are not made by another */
	u32 thread; /* make them in a new kernel thread */
	u32 exits;  /* the thread ends in a call after these */
	u32 seed;
};

/* What the calls of an order share. */
struct run {
	struct order order;
	struct known own, other;
	s64 out;
	u64 random;
	u32 exit_depth; /* 0 unless the thread ends in a call so deep */
	struct completion done;
};

static struct copy *copies;
static atomic_t made;

static u32 next(struct run *run)
{
	run->random = run->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return run->random >> 33;
}

static void note(const struct known *k, s64 *m)
{
	int i;

	*m++ = k->number;
	*m++ = k->low;
	*m++ = k->mid;
	*m++ = k->high;
	*m++ = k->wide;
	for (i = 0; i < 5; i++)
		*m++ = k->list[i];
	*m++ = k->part.kind;
	*m++ = k->part.deep.sum;
	for (i = 0; i < 3; i++)
		*m++ = k->part.deep.words[i];
	*m++ = k->part.id;
	*m++ = k->part.half[0];
	*m++ = k->part.half[1];
	memcpy(m, k->name, sizeof(k->name));
}

static void change(struct known *k, struct run *run)
{
	u32 r = next(run), which = next(run);

	if (which & 1)
		k->number = r;
	if (which & 2)
		k->low = r;
	if (which & 4)
		k->mid = r;
	if (which & 8)
		k->high = r;
	if (which & 16)
		k->wide = (u64)r << 11 | r;
	if (which & 32)
		k->list[r % 5] = r >> 8;
	if (which & 64)
		k->part.kind++;
	if (which & 128)
		k->part.deep.sum -= r;
	if (which & 256)
		k->part.deep.words[r % 3] ^= r;
	if (which & 512)
		k->part.half[r & 1] = r >> 1;
	if (which & 1024)
		k->name[r & 7] = r >> 3;
}

void known_call(struct known *k, u32 depth, struct run *run);

/* The function to trace. nr is the number of the call. */
__attribute__((noipa)) s64 known_change(struct known *k, u64 nr, s64 *out, u32 depth, struct run *run)
{
	u32 r = next(run);

	if (r & 3) /* every fourth call may change nothing */
		change(k, run);
	if (r & 4)
		*out = nr + r;
	if (depth == run->exit_depth)
		kthread_complete_and_exit(&run->done, 0);
	if (r & 8)
		yield();
	if (!(r & 0xff0))
		schedule_timeout_uninterruptible(1);
	if (depth < DEPTH && r & 0x3000)
		known_call(r & 0x4000 ? k : &run->other, depth + 1, run);
	if (r & 3)
		change(k, run);
	return r & 0x8000 ? *out : (s64)r - (1 << 30);
}

__attribute__((noipa)) void known_call(struct known *k, u32 depth, struct run *run)
{
	int nr = atomic_inc_return(&made) - 1;
	struct copy *c = copies + nr;

	if (nr >= COPIES)
		return;
	c->returned = 0;
	c->out[0] = run->out;
	note(k, c->members[0]);
	c->result = known_change(k, nr, &run->out, depth, run);
	c->out[1] = run->out;
	note(k, c->members[1]);
	c->returned = 1;
}

static void make(struct run *run)
{
	u32 i;

	for (i = 0; i < run->order.calls; i++)
		known_call(&run->own, 1, run);
	if (!run->order.exits)
		return;
	run->exit_depth = 1 + next(run) % DEPTH;
	for (i = 0; i < 100; i++) /* until they are deep enough */
		known_call(&run->own, 1, run);
}

static int make_thread(void *run)
{
	make(run);
	kthread_complete_and_exit(&((struct run *)run)->done, 0);
	return 0;
}

static ssize_t known_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	struct task_struct *task;
	struct run run = {};

	if (size != sizeof(run.order) || copy_from_user(&run.order, from, size))
		return -EINVAL;
	run.random = run.order.seed;
	init_completion(&run.done);
	if (!run.order.thread) {
		make(&run);
		return size;
	}
	task = kthread_run(make_thread, &run, "known");
	if (IS_ERR(task))
		return PTR_ERR(task);
	wait_for_completion(&run.done);
	return size;
}

static ssize_t known_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	size_t n = min(atomic_read(&made), COPIES);

	return simple_read_from_buffer(to, size, pos, copies, n * sizeof(*copies));
}

static int known_open(struct inode *inode, struct file *file)
{
	atomic_set(&made, 0);
	return 0;
}

static const struct file_operations known_operations = {
	.owner = THIS_MODULE,
	.open = known_open,
	.read = known_read,
	.write = known_write,
	.llseek = default_llseek,
};

static struct miscdevice known_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "known",
	.fops = &known_operations,
};

static int __init known_init(void)
{
	int err;

	copies = vzalloc(COPIES * sizeof(*copies));
	if (!copies)
		return -ENOMEM;
	err = misc_register(&known_device);
	if (err)
		vfree(copies);
	return err;
}

static void __exit known_exit(void)
{
	misc_deregister(&known_device);
	vfree(copies);
}

module_init(known_init);
module_exit(known_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("functions whose calls are known, for tests");
