"""A page whose network, tokens and tab can be broken by hand."""
import time
import urllib.parse


class Demo:
    """The page, and the actions of its buttons on the network and the tokens.

    `told` has the ids of the events that were reported as stored. Each must arrive once.
    """

    def __init__(self, stand):
        self.stand = stand
        self.told = set()
        self.are_tokens_good = True
        stand.site.actions.update({
            "/demo/told": self.tell, "/demo/token": self.token, "/demo/state": self.state,
            "/demo/cut": stand.wire.cut, "/demo/mend": stand.wire.mend,
            "/demo/expire": lambda: self.issue(False), "/demo/renew": lambda: self.issue(True),
        })
        query = urllib.parse.urlencode({"endpoint": stand.wire.url, "key": stand.gateway.write_key})
        self.address = f"{stand.site.url}/test/pages/demo.html?{query}"

    def tell(self, id):
        self.told.add(id)

    def issue(self, are_good):
        self.are_tokens_good = are_good

    def token(self, user):
        old = ("--lifetime", "60", "--now", str(int(time.time()) - 3600))
        return self.stand.gateway.token(user, "good", *(() if self.are_tokens_good else old))

    def state(self):
        """Compares the gateway's database with the page."""
        stored = self.stand.stored("demo")
        return {"told": len(self.told), "stored": len(set(stored)), "lost": len(self.told - set(stored)),
                "twice": len(stored) - len(set(stored))}
