/* The named handles of a program. A handle that belongs to a client is destroyed before it; one that is part of another, such as
 * the list of an event, is forgotten with it. A step whose handle does not exist is skipped, so that any part of a program is a
 * program. */
#include "runner.h"

static struct slot slots[MAX_SLOTS];
static int slot_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int other_threads;

struct slot *slot_find(const char *name) {
        struct slot *found = NULL;
        int i;
        pthread_mutex_lock(&lock);
        for (i = slot_count - 1; i >= 0 && !found; i--)
                if (slots[i].pointer && !strcmp(slots[i].name, name))
                        found = &slots[i];
        pthread_mutex_unlock(&lock);
        return found;
}

struct slot *slot_at(int index) { return index >= 0 && index < slot_count ? &slots[index] : NULL; }
int slot_index(const struct slot *slot) { return slot ? (int)(slot - slots) : -1; }

/* A full table keeps nothing: what it is given is leaked. */
struct slot *slot_put(const char *name, void *pointer, int kind, int is_owned, int root, int parent) {
        struct slot *slot;
        if (!pointer)
                return NULL;
        pthread_mutex_lock(&lock);
        slot = slot_count < MAX_SLOTS ? &slots[slot_count] : NULL;
        if (slot) {
                snprintf(slot->name, sizeof(slot->name), "%s", name);
                slot->kind = kind;
                slot->is_owned = is_owned;
                slot->root = root;
                slot->parent = parent;
                slot->thread = thread_index;
                slot->pointer = pointer;
                slot_count++;
        }
        pthread_mutex_unlock(&lock);
        return slot;
}

void slot_forget(struct slot *slot) {
        int i, index = slot_index(slot);
        slot->pointer = NULL;
        for (i = index + 1; i < slot_count; i++)
                if (slots[i].pointer && slots[i].parent == index)
                        slot_forget(&slots[i]);
}

/* A thread may use what is made for several threads, and what it made itself. */
int slot_usable(const struct slot *slot) { return kinds[slot->kind].is_shared || slot->thread == thread_index; }

/* True if a shared handle must not be destroyed now, because a callback or another thread may be using it. */
int slot_is_busy(const struct slot *slot) {
        return kinds[slot->kind].is_shared && (callback_depth > 0 || thread_index != 0 || other_threads > 0);
}

static void destroy(struct slot *slot) {
        const struct kind *kind = &kinds[slot->kind];
        void *pointer = slot->pointer;
        slots_prepare_destroy(slot);
        slot_forget(slot);
        if (strcmp(kind->destroy, "-")) {
                if (thread_index >= 0)
                        snprintf(progress->at[thread_index], sizeof(progress->at[0]), "cleanup of %s", slot->name);
                if (thread_index == 0)
                        progress->since = millis();
                ((void (*)(void *))symbol(kind->destroy))(pointer);
                if (thread_index == 0)
                        progress->since = 0;
                note(kind->destroy);
        }
}

/* Destroys what belongs to a client. */
void slots_prepare_destroy(struct slot *slot) {
        int i, index = slot_index(slot);
        for (i = slot_count - 1; i > index; i--)
                if (slots[i].pointer && slots[i].root == index) {
                        if (slots[i].is_owned)
                                destroy(&slots[i]);
                        else
                                slot_forget(&slots[i]);
                }
}

void slots_destroy_all(void) {
        int i;
        for (i = slot_count - 1; i >= 0; i--)
                if (slots[i].pointer && slots[i].is_owned)
                        destroy(&slots[i]);
}
