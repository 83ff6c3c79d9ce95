// The faults of a schedule. They strike at random times until `heal` is called.
import { startReplica } from './replica.js'
import type { Fault } from './schedule.js'
import type { Replica, Simulation } from './simulation.js'

/** @returns a function that ends all faults */
export function startFaults(simulation: Simulation): () => void {
  const { schedule, world, replicas, redis, provider, losses } = simulation
  const { faults } = schedule
  const undo = new Set<() => void>()
  let isActive = true

  function later(ms: number, end: () => void): void {
    const once = () => {
      if (undo.delete(once)) end()
    }
    undo.add(once)
    world.after(ms, once)
  }

  function anyReplica(action: (replica: Replica) => void): void {
    const ready = replicas.filter(({ process, listens }) => process.isAlive && !process.isStopped && listens)
    const replica = ready[Math.floor(world.random() * ready.length)]
    if (replica) action(replica)
  }

  function mark(replica: Replica, kind: string) {
    const trouble = { from: world.now(), to: Number.POSITIVE_INFINITY, kind }
    replica.troubles.push(trouble)
    return trouble
  }

  function stop(replica: Replica, isSuspended: boolean, ms: number): void {
    const { process } = replica
    if (!process.isAlive || process.isStopped) return
    const trouble = mark(replica, 'stopped')
    world.note(`${process.name} is ${isSuspended ? 'suspended' : 'stopped'} for ${Math.round(ms)} ms`)
    process.stop(isSuspended)
    later(ms, () => {
      world.note(`${process.name} continues`)
      process.resume()
      trouble.to = world.now() + 1500
    })
  }

  function end(replica: Replica, kind: string): void {
    world.note(`${replica.process.name} is ${kind}`)
    mark(replica, kind)
    replica.process.kill()
    replica.listens = false
    replica.isConnected = false
    replica.connection++
  }

  function startInPlaceOf(replica: Replica, ms: number): void {
    world.after(ms, () =>
      world.note(`${startReplica(simulation, replica.hostSlot).process.name} starts in its host slot`)
    )
  }

  function disturb(): void {
    simulation.disturbedAt = world.now()
  }

  function lose(what: string): void {
    world.note(what)
    losses.push(world.now())
    disturb()
  }

  function promote(ms: number): void {
    lose('an old replica of Redis is promoted')
    redis.promote(ms)
  }

  function excuseSessionsInRedis(id: string): void {
    const grant = provider.grants.get(id)
    if (grant && schedule.sessionStore === 'redis') grant.excuse ??= 'Redis lost the only copy'
  }

  const strikes: Readonly<Record<Fault, () => void>> = {
    'slow provider': () => {
      provider.slowUntil = world.now() + world.between(1000, 20_000)
    },
    'busy provider': () => {
      provider.busyUntil = world.now() + world.between(1000, 5000)
    },
    'failing provider': () => {
      provider.failingUntil = world.now() + world.between(1000, 5000)
    },
    'refusing provider': () => {
      provider.refusingUntil = world.now() + world.between(1000, 20_000)
    },
    'blaming provider': () => {
      const grants = [...provider.grants.values()]
      const blamed = grants[Math.floor(world.between(0, grants.length))]
      if (blamed) blamed.blamedUntil = world.now() + world.between(1000, 40_000)
    },
    'lost response': () => {},
    stop: () => anyReplica(replica => stop(replica, false, world.between(500, 30_000))),
    suspend: () => anyReplica(replica => stop(replica, true, world.between(500, 30_000))),
    'stop for long': () => anyReplica(replica => stop(replica, false, world.between(50_000, 65_000))),
    'suspend for long': () => anyReplica(replica => stop(replica, true, world.between(50_000, 110_000))),
    kill: () =>
      anyReplica(replica => {
        end(replica, 'killed')
        startInPlaceOf(replica, world.between(200, 3000))
      }),
    drain: () =>
      anyReplica(replica => {
        world.note(`${replica.process.name} drains`)
        replica.listens = false
        const endWhenIdle = () => {
          if (!replica.process.isAlive) return
          if (replica.running > 0 || !replica.isConnected || replica.process.isStopped) {
            world.after(100, endWhenIdle)
            return
          }
          void replica.sessions
            .saved()
            .then(() => world.after(50, () => replica.process.isAlive && end(replica, 'ended')))
        }
        world.after(100, endWhenIdle)
        startInPlaceOf(replica, world.between(200, 1000))
      }),
    'cut off': () =>
      anyReplica(replica => {
        world.note(`${replica.process.name} is cut off`)
        const trouble = mark(replica, 'cut off')
        replica.isCut = true
        // Half of the time the process notices only by a timeout.
        if (world.random() < 0.5) redis.disconnect(replica)
        later(world.between(500, 20_000), () => {
          world.note(`${replica.process.name} is connected again`)
          replica.isCut = false
          trouble.to = world.now() + 1500
          redis.disconnect(replica)
        })
      }),
    'kill Redis': () => {
      world.note('Redis is down')
      disturb()
      const { master } = redis
      master.isUp = false
      for (const replica of replicas) redis.disconnect(replica)
      later(world.between(200, 15_000), () => {
        world.note('Redis is up')
        master.isUp = true
        simulation.disturbedAt = world.now() + 3000
      })
    },
    'stop Redis': () => {
      world.note('Redis is stopped')
      disturb()
      const { master } = redis
      master.isStopped = true
      later(world.between(200, 15_000), () => {
        world.note('Redis continues')
        master.isStopped = false
        simulation.disturbedAt = world.now() + 3000
        for (const arrive of master.waiting.splice(0)) arrive()
      })
    },
    'slow Redis': () => {
      world.note('Redis is slow')
      const { master } = redis
      master.slowMs = world.between(20, 700)
      later(world.between(1000, 10_000), () => {
        master.slowMs = 0
        disturb()
      })
    },
    flush: () => {
      lose('FLUSHALL')
      for (const id of redis.master.cells.keys()) excuseSessionsInRedis(id)
      redis.master.cells.clear()
      redis.master.hostSlots.clear()
    },
    evict: () => {
      lose('a key is evicted')
      const ids = [...redis.master.cells.keys()]
      const id = ids[Math.floor(world.random() * ids.length)]
      if (id === undefined) return
      excuseSessionsInRedis(id)
      redis.master.cells.delete(id)
    },
    promote: () => promote(world.between(100, 1500)),
    'two masters': () => {
      lose('there are two masters')
      const old = redis.master
      redis.addMaster()
      const differenceMs = 2000
      for (const replica of replicas) {
        const leave = () => replica.redis === old && redis.disconnect(replica)
        world.after(world.between(0, differenceMs), leave)
      }
      world.after(differenceMs + 500, () => {
        old.isUp = false
        losses.push(world.now())
        for (const replica of replicas) if (replica.redis === old) redis.disconnect(replica)
      })
    },
    'stop after grant': () => trapGrant(replica => stop(replica, false, world.between(66_000, 90_000))),
    'suspend after grant': () => trapGrant(replica => stop(replica, true, world.between(66_000, 90_000))),
    'stop while sending': () => {
      provider.onSent = replica => {
        provider.onSent = undefined
        world.after(10, () => stop(replica, false, world.between(60_500, 63_500)))
      }
    },
    'kill while checking': () => {
      provider.onUserInfo = replica => {
        provider.onUserInfo = undefined
        end(replica, 'killed while it checks the access list')
        startInPlaceOf(replica, world.between(200, 3000))
      }
    },
    'promote after logout': () => {},
    'promote after commit': () => {
      provider.onFirstStored = replica => {
        provider.onFirstStored = undefined
        const delayMs = world.random() < 0.5 ? 0 : 150
        world.after(delayMs, () => stop(replica, false, world.between(4000, 20_000)))
        world.after(delayMs + 50, () => promote(450))
      }
    }
  }

  /** Calls `action` when a lease was granted, before its process knows it. */
  function trapGrant(action: (replica: Replica) => void): void {
    const { onStored } = redis
    redis.onStored = (id, cell, replica, replaced) => {
      onStored(id, cell, replica, replaced)
      if (cell.entry.lease?.owner !== replica.owner || replica.process.isStopped) return
      redis.onStored = onStored
      action(replica)
    }
  }

  function strike(): void {
    world.after(world.between(200, 10_000), () => {
      if (!isActive) return
      strikes[faults[Math.floor(world.random() * faults.length)] as Fault]()
      strike()
    })
  }
  if (faults.length > 0) strike()

  return () => {
    isActive = false
    for (const once of [...undo]) once()
    Object.assign(provider, {
      slowUntil: 0,
      refusingUntil: 0,
      busyUntil: 0,
      failingUntil: 0,
      onSent: undefined,
      onUserInfo: undefined,
      onFirstStored: undefined
    })
  }
}
