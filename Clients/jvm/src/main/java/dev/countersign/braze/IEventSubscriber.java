package dev.countersign.braze;

/** As com.braze.events.IEventSubscriber. */
@FunctionalInterface
public interface IEventSubscriber<Event> {
    /** Takes an event, on a thread of the client. */
    void trigger(Event event);
}
