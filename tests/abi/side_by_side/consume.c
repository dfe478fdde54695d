/* Consuming without brokers: the simple consumer, assignments, positions, and results of misuse. */
#include "side_by_side.h"

static rd_kafka_t *consumer(const char *name, const char *value) {
        rd_kafka_conf_t *conf = conf_of("bootstrap.servers", DEAD, name, value, NULL);
        rd_kafka_conf_set_error_cb(conf, NULL);
        return consumer_of(conf);
}

CASE(simple_start_and_stop) {
        rd_kafka_t *rk = consumer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        rd_kafka_message_t *message;
        int result;
        long began;
        result = rd_kafka_consume_stop(topic, 0);
        say("stop before start %d %s", result, err(rd_kafka_last_error()));
        say("start %d", rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING));
        result = rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_END);
        say("start again %d %s", result, result ? err(rd_kafka_last_error()) : "");
        result = rd_kafka_consume_start(topic, -1, 0);
        say("start of partition -1 %d %s %s", result, err(rd_kafka_last_error()), errno_name(errno));
        result = rd_kafka_consume_start(topic, -7, 0);
        say("start of partition -7 %d %s %s", result, err(rd_kafka_last_error()), errno_name(errno));
        began = millis();
        message = rd_kafka_consume(topic, 0, 400);
        say_message("consume", message);
        say("took %s, last error %s", took(began, 400), err(rd_kafka_last_error()));
        message = rd_kafka_consume(topic, 5, 0);
        say_message("consume of another", message);
        say("last error %s", err(rd_kafka_last_error()));
        say("seek %s", err(rd_kafka_seek(topic, 0, 5, 0)));
        say("seek of another %s", err(rd_kafka_seek(topic, 5, 5, 100)));
        say("offset_store %s", err(rd_kafka_offset_store(topic, 0, 3)));
        say("offset_store of another %s", err(rd_kafka_offset_store(topic, 5, 3)));
        say("stop %d", rd_kafka_consume_stop(topic, 0));
        result = rd_kafka_consume_stop(topic, 0);
        say("stop again %d %s", result, err(rd_kafka_last_error()));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(simple_start_at_odd_offsets) {
        rd_kafka_t *rk = consumer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        static const int64_t offsets[] = {RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END, RD_KAFKA_OFFSET_INVALID, RD_KAFKA_OFFSET_TAIL(0),
                                          RD_KAFKA_OFFSET_TAIL(10), 0, 9223372036854775807LL, -5, RD_KAFKA_OFFSET_STORED};
        int i;
        for (i = 0; i < 9; i++) {
                int result = rd_kafka_consume_start(topic, i, offsets[i]);
                say("%s: %d %s %s", offset_name(offsets[i]), result, result ? err(rd_kafka_last_error()) : "", result ? errno_name(errno) : "");
                if (!result)
                        say("stop %d", rd_kafka_consume_stop(topic, i));
        }
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(simple_queue) {
        rd_kafka_t *rk = consumer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_message_t *messages[4];
        long began;
        say("start %d", rd_kafka_consume_start_queue(topic, 0, 0, queue));
        say("start of another %d", rd_kafka_consume_start_queue(topic, 1, 0, queue));
        began = millis();
        say_message("consume_queue", rd_kafka_consume_queue(queue, 400));
        say("took %s", took(began, 400));
        say("batch %d", (int)rd_kafka_consume_batch_queue(queue, 100, messages, 4));
        say("batch of a partition that has a queue %d", (int)rd_kafka_consume_batch(topic, 0, 100, messages, 4));
        say("stop %d", rd_kafka_consume_stop(topic, 0));
        say("stop %d", rd_kafka_consume_stop(topic, 1));
        rd_kafka_queue_destroy(queue);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

static void never(rd_kafka_message_t *message UNUSED, void *opaque UNUSED) { say("called back"); }

CASE(simple_callback) {
        rd_kafka_t *rk = consumer(NULL, NULL);
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        say("before start %d %s", rd_kafka_consume_callback(topic, 0, 50, never, NULL), err(rd_kafka_last_error()));
        say("start %d", rd_kafka_consume_start(topic, 0, 0));
        say("callback %d", rd_kafka_consume_callback(topic, 0, 100, never, NULL));
        say("stop %d", rd_kafka_consume_stop(topic, 0));
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(assignment_without_a_group) {
        rd_kafka_t *rk = consumer(NULL, NULL);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1), *assigned = NULL;
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say("assign %s", err(rd_kafka_assign(rk, list)));
        say("assignment %s", err(rd_kafka_assignment(rk, &assigned)));
        say("incremental assign %s", rd_kafka_error_name(rd_kafka_incremental_assign(rk, list)));
        say("poll_set_consumer %s", err(rd_kafka_poll_set_consumer(rk)));
        say_message("consumer_poll", rd_kafka_consumer_poll(rk, 10));
        say("committed %s", err(rd_kafka_committed(rk, list, 10)));
        say("commit %s", err(rd_kafka_commit(rk, list, 0)));
        say("close %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(assignments) {
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1), *assigned = NULL;
        say("assignment %s", err(rd_kafka_assignment(rk, &assigned)));
        say_partitions("at first", assigned);
        rd_kafka_topic_partition_list_destroy(assigned);
        say("assign nothing %s", err(rd_kafka_assign(rk, NULL)));
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 5;
        rd_kafka_topic_partition_list_add(list, "t", 1)->offset = RD_KAFKA_OFFSET_BEGINNING;
        rd_kafka_topic_partition_list_add(list, "a", 1);
        say("assign %s", err(rd_kafka_assign(rk, list)));
        say("assignment %s", err(rd_kafka_assignment(rk, &assigned)));
        say_partitions("assigned", assigned);
        say("lost %d", rd_kafka_assignment_lost(rk));
        say("position %s", err(rd_kafka_position(rk, assigned)));
        say_partitions("position", assigned);
        say("pause %s", err(rd_kafka_pause_partitions(rk, assigned)));
        say_partitions("pause", assigned);
        rd_kafka_topic_partition_list_add(assigned, "other", 0);
        say("resume with another %s", err(rd_kafka_resume_partitions(rk, assigned)));
        say_partitions("resume", assigned);
        rd_kafka_topic_partition_list_destroy(assigned);
        say("assign twice the same %s", err((rd_kafka_topic_partition_list_add(list, "t", 0), rd_kafka_assign(rk, list))));
        say("assign an empty list %s", err((rd_kafka_topic_partition_list_del_by_idx(list, 0), rd_kafka_topic_partition_list_del_by_idx(list, 0),
                                            rd_kafka_topic_partition_list_del_by_idx(list, 0), rd_kafka_topic_partition_list_del_by_idx(list, 0),
                                            rd_kafka_assign(rk, list))));
        say("assignment %s", err(rd_kafka_assignment(rk, &assigned)));
        say_partitions("emptied", assigned);
        rd_kafka_topic_partition_list_destroy(assigned);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(incremental_assignments) {
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1), *assigned = NULL;
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say_error("assign", rd_kafka_incremental_assign(rk, list));
        say_error("again", rd_kafka_incremental_assign(rk, list));
        rd_kafka_topic_partition_list_add(list, "t", 1);
        say_error("one more", rd_kafka_incremental_assign(rk, list));
        rd_kafka_topic_partition_list_del_by_idx(list, 0);
        say_error("only the new", rd_kafka_incremental_assign(rk, list));
        rd_kafka_assignment(rk, &assigned);
        rd_kafka_topic_partition_list_sort(assigned, NULL, NULL);
        say_partitions("assigned", assigned);
        rd_kafka_topic_partition_list_destroy(assigned);
        say_error("unassign", rd_kafka_incremental_unassign(rk, list));
        say_error("unassign again", rd_kafka_incremental_unassign(rk, list));
        rd_kafka_assignment(rk, &assigned);
        say_partitions("assigned", assigned);
        rd_kafka_topic_partition_list_destroy(assigned);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(seek_partitions) {
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        long began;
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 3;
        say_error("not assigned", rd_kafka_seek_partitions(rk, list, 200));
        say_partitions("not assigned", list);
        rd_kafka_assign(rk, list);
        began = millis();
        say_error("assigned", rd_kafka_seek_partitions(rk, list, 0));
        say("took %s", took(began, 1000));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(seek_to_special_offsets) {
        static const int64_t offsets[] = {RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END, -3, -4, -5, -999,
                                          RD_KAFKA_OFFSET_STORED, RD_KAFKA_OFFSET_INVALID, -1002,
                                          RD_KAFKA_OFFSET_TAIL(0), RD_KAFKA_OFFSET_TAIL(3)};
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        size_t index;
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 3;
        rd_kafka_assign(rk, list);
        for (index = 0; index < sizeof(offsets) / sizeof(*offsets); index++) {
                say("seek to %ld: %s, with a timeout %s", (long)offsets[index],
                    err(rd_kafka_seek(topic, 0, offsets[index], 0)),
                    err(rd_kafka_seek(topic, 0, offsets[index], 5000)));
                list->elems[0].offset = offsets[index];
                say_error("partitions", rd_kafka_seek_partitions(rk, list, 5000));
                say_partitions("partitions", list);
        }
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
}

CASE(offsets_stored) {
        rd_kafka_t *rk = consumer("enable.auto.offset.store", "false");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 3;
        say("without a group %s", err(rd_kafka_offsets_store(rk, list)));
        say_partitions("without a group", list);
        rd_kafka_destroy(rk);
        rk = consumer_of(conf_of("group.id", "g", "enable.auto.offset.store", "false", NULL));
        say("not assigned %s", err(rd_kafka_offsets_store(rk, list)));
        say_partitions("not assigned", list);
        rd_kafka_assign(rk, list);
        rd_kafka_topic_partition_list_add(list, "u", 0)->offset = 4;
        say("one assigned %s", err(rd_kafka_offsets_store(rk, list)));
        say_partitions("one assigned", list);
        /* The original waits for a coordinator to commit to. */
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        rk = consumer_of(conf_of("group.id", "g", "enable.auto.offset.store", "true", NULL));
        rd_kafka_assign(rk, list);
        say("with automatic storing %s", err(rd_kafka_offsets_store(rk, list)));
        rd_kafka_topic_partition_list_destroy(list);
        /* The original's rd_kafka_destroy would not return. */
        say("end");
        _exit(0);
}

CASE(commits_without_brokers) {
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        long began;
        say("nothing to commit %s", err(rd_kafka_commit(rk, NULL, 0)));
        say("nothing to commit, later %s", err(rd_kafka_commit(rk, NULL, 1)));
        say("an empty list %s", err(rd_kafka_commit(rk, list, 0)));
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say("no offset %s", err(rd_kafka_commit(rk, list, 0)));
        list->elems[0].offset = 5;
        say("later %s", err(rd_kafka_commit(rk, list, 1)));
        began = millis();
        say("committed %s", err(rd_kafka_committed(rk, list, 500)));
        say("took %s", took(began, 500));
        say_partitions("committed", list);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(questions_without_brokers) {
        rd_kafka_t *rk = consumer(NULL, NULL);
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "t", NULL);
        int64_t low = 77, high = 88;
        long began = millis();
        say("watermarks %s", err(rd_kafka_query_watermark_offsets(rk, "t", 0, &low, &high, 500)));
        say("took %s, low %lld high %lld", took(began, 500), (long long)low, (long long)high);
        say("cached watermarks %s low %lld high %lld", err(rd_kafka_get_watermark_offsets(rk, "t", 0, &low, &high)), (long long)low, (long long)high);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = 1;
        began = millis();
        say("offsets_for_times %s", err(rd_kafka_offsets_for_times(rk, list, 500)));
        say("took %s", took(began, 500));
        began = millis();
        say("metadata %s", err(rd_kafka_metadata(rk, 1, NULL, &metadata, 500)));
        say("took %s", took(began, 500));
        say("metadata of a topic %s", err(rd_kafka_metadata(rk, 0, topic, &metadata, 500)));
        began = millis();
        say("cluster id %s", quoted(rd_kafka_clusterid(rk, 500)));
        say("took %s", took(began, 500));
        say("controller %d", rd_kafka_controllerid(rk, 300));
        rd_kafka_topic_destroy(topic);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(consumer_poll_times_out) {
        rd_kafka_t *rk = consumer("group.id", "g");
        long began = millis();
        say_message("poll", rd_kafka_consumer_poll(rk, 400));
        say("took %s", took(began, 400));
        say("last error %s", err(rd_kafka_last_error()));
        say_message("poll 0", rd_kafka_consumer_poll(rk, 0));
        rd_kafka_destroy(rk);
}

CASE(close_and_use) {
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        long began = millis();
        rd_kafka_topic_partition_list_add(list, "t", 0);
        say("assign %s", err(rd_kafka_assign(rk, list)));
        say("close %s", err(rd_kafka_consumer_close(rk)));
        say("took %s", took(began, 20000));
        say("closed %d", rd_kafka_consumer_closed(rk));
        say("close again %s", err(rd_kafka_consumer_close(rk)));
        say_message("poll", rd_kafka_consumer_poll(rk, 100));
        say("assign %s", err(rd_kafka_assign(rk, list)));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

CASE(destroy_without_close) {
        rd_kafka_t *rk = consumer("group.id", "g");
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        long began;
        rd_kafka_topic_partition_list_add(list, "t", 0);
        rd_kafka_assign(rk, list);
        rd_kafka_topic_partition_list_destroy(list);
        began = millis();
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        say("took %s", took(began, 10000));
}

/* ---- With brokers: the client's state of partitions that it consumes, has consumed, or has never consumed ---- */

/* A topic of 2 partitions with 3 records in each. */
static void filled_topic(const char *name) {
        rd_kafka_t *rk = producer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        int i;
        for (i = 0; i < 6; i++)
                rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(name), RD_KAFKA_V_PARTITION(i % 2), RD_KAFKA_V_VALUE("abcdef" + i, 1), RD_KAFKA_V_END);
        say("flush %s", err(rd_kafka_flush(rk, 20000)));
        rd_kafka_destroy(rk);
}

static void say_position(rd_kafka_t *rk, const char *what, const char *topic) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(list, topic, 0);
        rd_kafka_topic_partition_list_add(list, topic, 1);
        say("position %s", err(rd_kafka_position(rk, list)));
        say_partitions(what, list);
        rd_kafka_topic_partition_list_destroy(list);
}

static void poll_one(rd_kafka_t *rk) {
        rd_kafka_message_t *message = NULL;
        UNTIL((message = rd_kafka_consumer_poll(rk, 100)), (void)0);
        say_message("poll", message);
        if (message)
                rd_kafka_message_destroy(message);
}

static rd_kafka_topic_partition_list_t *one_partition(const char *topic, int partition, int64_t offset) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = offset;
        return list;
}

BROKER_CASE(positions) {
        const char *topic = topic_name("positions");
        rd_kafka_t *rk;
        rd_kafka_topic_partition_list_t *list = one_partition(topic, 0, 1);
        filled_topic(topic);
        rk = consumer_of(conf_of("bootstrap.servers", bootstrap(), "group.id", topic_name("positions"), "enable.auto.commit", "false", NULL));
        say_position(rk, "before", topic);
        say("assign %s", err(rd_kafka_assign(rk, list)));
        say_position(rk, "assigned", topic);
        poll_one(rk);
        say_position(rk, "one read", topic);
        list->elems[0].offset = 0;
        say_error("seek", rd_kafka_seek_partitions(rk, list, 5000));
        say_partitions("seek", list);
        say_position(rk, "sought", topic);
        poll_one(rk);
        say_position(rk, "one read", topic);
        say("pause %s", err(rd_kafka_pause_partitions(rk, list)));
        say_position(rk, "paused", topic);
        say("resume %s", err(rd_kafka_resume_partitions(rk, list)));
        list->elems[0].offset = 2;
        say("assign %s", err(rd_kafka_assign(rk, list)));
        poll_one(rk);
        say_position(rk, "one read", topic);
        say_error("unassign", rd_kafka_incremental_unassign(rk, list));
        /* The original resets the position a little later, in another thread. */
        usleep(500000);
        say_position(rk, "unassigned", topic);
        say_error("assign", rd_kafka_incremental_assign(rk, list));
        say_position(rk, "assigned incrementally", topic);
        say("close %s", err(rd_kafka_consumer_close(rk)));
        say("closed %d", rd_kafka_consumer_closed(rk));
        say_position(rk, "closed", topic);
        say("close again %s", err(rd_kafka_consumer_close(rk)));
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_destroy(rk);
}

BROKER_CASE(offsets_stored_of_known_and_unknown_partitions) {
        const char *topic = topic_name("known");
        rd_kafka_t *rk;
        rd_kafka_topic_t *object;
        const struct rd_kafka_metadata *metadata;
        rd_kafka_topic_partition_list_t *list = one_partition(topic, 0, 0), *other = one_partition(topic, 1, 3), *third = one_partition(topic, 7, 3);
        filled_topic(topic);
        rk = consumer_of(conf_of("bootstrap.servers", bootstrap(), "group.id", topic_name("known"), "enable.auto.commit", "false",
                                 "enable.auto.offset.store", "false", NULL));
        say("before %s", err(rd_kafka_offsets_store(rk, other)));
        rd_kafka_assign(rk, list);
        poll_one(rk);
        list->elems[0].offset = 2;
        say("of the one that is read %s", err(rd_kafka_offsets_store(rk, list)));
        say("of another %s", err(rd_kafka_offsets_store(rk, other)));
        say_partitions("of another", other);
        say("of one that is not there %s", err(rd_kafka_offsets_store(rk, third)));
        say_error("seek another", rd_kafka_seek_partitions(rk, other, 1000));
        say_partitions("seek another", other);
        say_error("seek one that is not there", rd_kafka_seek_partitions(rk, third, 1000));
        say_partitions("seek one that is not there", third);
        object = rd_kafka_topic_new(rk, topic, NULL);
        say("metadata %s", err(rd_kafka_metadata(rk, 0, object, &metadata, 10000)));
        rd_kafka_metadata_destroy(metadata);
        say("offset_store of the one that is read %s", err(rd_kafka_offset_store(object, 0, 1)));
        say("offset_store of another %s", err(rd_kafka_offset_store(object, 1, 1)));
        say("offset_store of one that is not there %s", err(rd_kafka_offset_store(object, 7, 1)));
        say("seek another %s", err(rd_kafka_seek(object, 1, 1, 1000)));
        say("seek one that is not there %s", err(rd_kafka_seek(object, 7, 1, 1000)));
        say("pause %s", err(rd_kafka_pause_partitions(rk, third)));
        say_partitions("pause one that is not there", third);
        say("assign nothing %s", err(rd_kafka_assign(rk, NULL)));
        say("after the assignment %s", err(rd_kafka_offsets_store(rk, list)));
        say("seek after the assignment %s", err(rd_kafka_seek(object, 0, 1, 1000)));
        rd_kafka_topic_destroy(object);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_partition_list_destroy(other);
        rd_kafka_topic_partition_list_destroy(third);
        rd_kafka_destroy(rk);
}

BROKER_CASE(older_calls_start_stop_and_start_again) {
        const char *topic = topic_name("older");
        rd_kafka_t *rk;
        rd_kafka_topic_t *object;
        rd_kafka_message_t *message;
        filled_topic(topic);
        rk = consumer_of(conf_of("bootstrap.servers", bootstrap(), NULL));
        object = rd_kafka_topic_new(rk, topic, NULL);
        say("start %d", rd_kafka_consume_start(object, 0, 1));
        UNTIL((message = rd_kafka_consume(object, 0, 100)), (void)0);
        say_message("consume", message);
        say_position(rk, "position", topic);
        say("offset_store %s", err(rd_kafka_offset_store(object, 0, 1)));
        say("offset_store of another %s", err(rd_kafka_offset_store(object, 1, 1)));
        say("offset_store of one that is not there %s", err(rd_kafka_offset_store(object, 7, 1)));
        say("seek of another %s", err(rd_kafka_seek(object, 1, 1, 1000)));
        say("seek of one that is not there %s", err(rd_kafka_seek(object, 7, 1, 1000)));
        say("seek %s", err(rd_kafka_seek(object, 0, 0, 1000)));
        say_position(rk, "sought", topic);
        UNTIL((message = rd_kafka_consume(object, 0, 100)), (void)0);
        say_message("consume", message);
        say("stop %d", rd_kafka_consume_stop(object, 0));
        say_position(rk, "stopped", topic);
        say("seek when stopped %s", err(rd_kafka_seek(object, 0, 0, 1000)));
        say("offset_store when stopped %s", err(rd_kafka_offset_store(object, 0, 1)));
        say("start %d", rd_kafka_consume_start(object, 0, 2));
        UNTIL((message = rd_kafka_consume(object, 0, 100)), (void)0);
        say_message("consume", message);
        say_message("consume of one that is not there", rd_kafka_consume(object, 7, 0));
        say("last error %s", err(rd_kafka_last_error()));
        say("stop %d", rd_kafka_consume_stop(object, 0));
        /* The original may wait forever in rd_kafka_destroy() for a partition that was started again; the process ends instead. */
}

static struct recorder outcomes = RECORDER;

static void on_outcome(rd_kafka_t *rk UNUSED, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list, void *opaque UNUSED) {
        int i;
        record(&outcomes, "callback %s", err(code));
        for (i = 0; list && i < list->cnt; i++)
                record(&outcomes, "  %s [%d] offset %s error %s epoch %d", list->elems[i].topic, list->elems[i].partition,
                       offset_name(list->elems[i].offset), err(list->elems[i].err),
                       rd_kafka_topic_partition_get_leader_epoch(&list->elems[i]));
}

/* Polls until the outcome of a commit was called back. */
static void await_outcome(rd_kafka_t *rk, const char *what, rd_kafka_resp_err_t code) {
        static int seen;
        say("%s %s", what, err(code));
        record(&outcomes, "%s", what);
        seen++;
        UNTIL(recorded_with(&outcomes, "callback") == seen, rd_kafka_poll(rk, 50));
}

BROKER_CASE(commits_and_the_lists_of_their_callbacks) {
        const char *topic = topic_name("commits");
        rd_kafka_conf_t *conf;
        rd_kafka_t *rk;
        rd_kafka_message_t *message;
        rd_kafka_topic_partition_list_t *list = one_partition(topic, 0, RD_KAFKA_OFFSET_BEGINNING);
        rd_kafka_queue_t *queue;
        rd_kafka_event_t *event;
        filled_topic(topic);
        conf = conf_of("bootstrap.servers", bootstrap(), "group.id", topic_name("commits"), "enable.auto.commit", "false", NULL);
        rd_kafka_conf_set_offset_commit_cb(conf, on_outcome);
        rk = consumer_of(conf);
        rd_kafka_topic_partition_list_add(list, topic, 1)->offset = RD_KAFKA_OFFSET_END;
        say("assign %s", err(rd_kafka_assign(rk, list)));
        message = NULL;
        UNTIL(message, message = rd_kafka_consumer_poll(rk, 100));
        say_message("one", message);
        await_outcome(rk, "stored offsets", rd_kafka_commit(rk, NULL, 0));
        await_outcome(rk, "nothing new", rd_kafka_commit(rk, NULL, 0));
        await_outcome(rk, "nothing new, later", rd_kafka_commit(rk, NULL, 1));
        await_outcome(rk, "a message", rd_kafka_commit_message(rk, message, 0));
        await_outcome(rk, "a message, later", rd_kafka_commit_message(rk, message, 1));
        rd_kafka_message_destroy(message);
        list->elems[0].offset = 1;
        list->elems[1].offset = RD_KAFKA_OFFSET_INVALID;
        await_outcome(rk, "one of two", rd_kafka_commit(rk, list, 0));
        list->elems[0].offset = RD_KAFKA_OFFSET_INVALID;
        await_outcome(rk, "none of two", rd_kafka_commit(rk, list, 0));
        list->elems[0].offset = 2;
        rd_kafka_topic_partition_list_add(list, topic, 17)->offset = 1;
        rd_kafka_topic_partition_list_add(list, "another", 3)->offset = 1;
        await_outcome(rk, "unknown partitions", rd_kafka_commit(rk, list, 0));
        say_partitions("unknown partitions", list);
        queue = rd_kafka_queue_new(rk);
        say("to a queue %s", err(rd_kafka_commit_queue(rk, NULL, queue, NULL, NULL)));
        event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
        say("event %s %s", rd_kafka_event_name(event), err(rd_kafka_event_error(event)));
        say_partitions("event", rd_kafka_event_topic_partition_list(event));
        rd_kafka_event_destroy(event);
        rd_kafka_queue_destroy(queue);
        say_recorded("outcomes", &outcomes);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_consumer_close(rk);
        rd_kafka_destroy(rk);
}

/* Reads one message by the older calls from an offset, stops, and says what the group committed. */
static void say_committed_after(const char *what, int64_t from) {
        char errstr[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();
        rd_kafka_topic_t *topic;
        rd_kafka_message_t *message;
        rd_kafka_t *host, *rk;
        int tries;
        rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", NULL, 0);
        rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
        host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof(errstr));
        rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(host), "t", 1, 1);
        rd_kafka_producev(host, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1), RD_KAFKA_V_END);
        rd_kafka_flush(host, TIMEOUT_MS);
        conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(rd_kafka_handle_mock_cluster(host)), NULL, 0);
        rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
        rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof(errstr));
        rd_kafka_topic_conf_set(topic_conf, "auto.offset.reset", "smallest", NULL, 0);
        topic = rd_kafka_topic_new(rk, "t", topic_conf);
        rd_kafka_consume_start(topic, 0, from);
        message = rd_kafka_consume(topic, 0, TIMEOUT_MS);
        say("%s: %s", what, message ? err(message->err) : "no message");
        if (message)
                rd_kafka_message_destroy(message);
        rd_kafka_consume_stop(topic, 0);
        rd_kafka_topic_partition_list_add(list, "t", 0)->offset = RD_KAFKA_OFFSET_INVALID;
        /* The last commit of librdkafka ends after the call. */
        for (tries = 0; tries < 20 && list->elems[0].offset < 0; tries++) {
                usleep(50000);
                rd_kafka_committed(rk, list, TIMEOUT_MS);
        }
        say("committed %lld", (long long)list->elems[0].offset);
        rd_kafka_topic_partition_list_destroy(list);
        rd_kafka_topic_destroy(topic);
        rd_kafka_destroy(rk);
        rd_kafka_destroy(host);
}

CASE(older_calls_commit_what_began_at_the_stored_offset) {
        say_committed_after("stored", RD_KAFKA_OFFSET_STORED);
        say_committed_after("beginning", RD_KAFKA_OFFSET_BEGINNING);
        say_committed_after("number", 0);
}
