package dev.countersign.braze;

/** Replaces com.braze.events.IEventSubscriber. */
@FunctionalInterface
public interface IEventSubscriber<Event> {
    /** Receives an event, on a thread of the Countersign client. */
    void trigger(Event event);
}
