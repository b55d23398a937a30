internal import GatewayModel

/// One endpoint and what is to be done for it: what comes by itself, and what an operator has asked for.
struct DeliveryLane: Sendable {
    enum Job: Sendable {
        case events(WebhookEndpoint, DeliveryMachine.Work)
        case request(WebhookEndpoint, WebhookRequest)
    }

    var endpoint: WebhookEndpoint
    var machine: DeliveryMachine
    private var requests: [WebhookRequest] = []
    /// True while a job is being done: there is never a second one.
    var isBusy = false
    /// True when it has passed a gap without an event to deliver, so that no delivery has told of it yet.
    var isAfterGap = false
    /// The two kinds take turns.
    private var isRequestsTurn = true

    init(endpoint: WebhookEndpoint, machine: DeliveryMachine) {
        self.endpoint = endpoint
        self.machine = machine
    }

    /// Takes over what was read; what is being delivered stays as it is.
    mutating func take(over endpoint: WebhookEndpoint, _ requests: [WebhookRequest]) {
        self.endpoint = endpoint
        if endpoint.pause == nil, machine.isPaused { machine.resume() }
        if endpoint.pause != nil { machine.pause() }
        // Other filters may let through what the ones before did not.
        machine.wake()
        self.requests = requests
    }

    /// Begins what is due; nil when nothing is.
    mutating func begin(atMilliseconds now: Int64, newID: () -> String) -> Job? {
        if isBusy { return nil }
        let request = requests.first {
            DueTime.hasCome($0.nextMilliseconds, at: now, within: RetryPause.longest)
        }
        if let request, isRequestsTurn { return begin(request) }
        if case .deliver(let work) = machine.next(atMilliseconds: now, newID: newID) {
            isBusy = true
            isRequestsTurn = true
            return .events(endpoint, work)
        }
        return request.map { begin($0) }
    }

    private mutating func begin(_ request: WebhookRequest) -> Job {
        isBusy = true
        isRequestsTurn = false
        return .request(endpoint, request)
    }

    /// A request has come so far, or is over.
    mutating func settle(_ request: WebhookRequest, isOver: Bool) {
        isBusy = false
        requests.removeAll { $0.id == request.id }
        guard !isOver else { return }
        requests.append(request)
        requests.sort { $0.id < $1.id }
    }
}
