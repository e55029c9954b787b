/** Users change Machines and MachineDeployments while claims come and go and the hub is slow (cluster-api.md 8 to 10). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, type NodeClaim, ownValue, type ResourceType } from '@tenon/api'
import { type KubeClient, KubeError, type ObjectKey, type PatchOptions } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import { type Random, SeededRandom, unit } from '@tenon/runtime'
import { ownNames } from '../names.ts'
import type { Machine } from '../objects.ts'
import { hubKinds, names, Stage } from '../testing/fake-hub.test-support.ts'

const types = ['md-0', 'md-1', 'md-2']
const minute = 60_000

const uidOfClaim = ({ metadata }: Machine) => ownValue(metadata.annotations, ownNames.nodeClaimUid)

/** What one run is about: a hub, claims, users, and what is checked against Tenon. */
class Play {
  readonly stage = new Stage()
  readonly random: Random
  /** Claims that their owner wants, by UID. */
  readonly wanted = new Map<string, NodeClaim>()
  readonly faults: string[] = []
  /** Claims that the core ends, by UID. */
  readonly #leaving = new Map<string, NodeClaim>()
  readonly #end = new AbortController()
  readonly #threads: Promise<void>[] = []
  readonly provider
  #serial = 0
  /** How often users have added a replica, by name of the MachineDeployment. */
  readonly raised = new Map<string, number>()
  /** How often users have taken one, for which none has gone that a claim wants. */
  #lowered = 0

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    for (const name of types) this.stage.add({ name })
    this.provider = this.stage.newProvider(this.#client())
    this.provider.startControllers(this.#end.signal)
    this.stage.kube.cache(hubKinds.machine).onChange((change) => {
      if (change.kind === 'updated') this.#judge(change.old, change.object)
    })
  }

  chance(share: number): boolean {
    return unit(this.random) < share
  }

  pick<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(unit(this.random) * all.length)]
  }

  /** Users may end their Machines; whoever else ends one that a claim wants is at fault. */
  #judge(old: Machine, machine: Machine): void {
    const [before, now] = [uidOfClaim(old), uidOfClaim(machine)]
    const { name, deletionTimestamp } = machine.metadata
    if (before !== undefined && now !== before)
      this.faults.push(`${name} went from ${before} to ${now ?? 'nobody'}`)
    const isNews = old.metadata.deletionTimestamp === undefined && deletionTimestamp !== undefined
    if (!isNews || now === undefined || !this.wanted.has(now)) return
    if (this.#lowered === 0) this.faults.push(`${name} ended, ${now} wants it`)
    else {
      // Cluster API chooses which Machine goes when a user lowers the replicas, and the core ends its claim.
      this.#lowered--
      void this.leave(now)
    }
  }

  /** Slow, and failing now and then before or after it did what it should. */
  #client(): KubeClient {
    const { stage } = this
    const slow = async <T>(act: () => Promise<T>): Promise<T> => {
      await stage.clock.sleep(400 * unit(this.random) ** 2)
      if (this.chance(0.03)) throw new KubeError('server', 503, 'try again')
      const answer = await act()
      await stage.clock.sleep(400 * unit(this.random) ** 2)
      if (this.chance(0.03)) throw new KubeError('transport', 0, 'socket hang up')
      return answer
    }
    const { kube } = stage
    return {
      get: (type, key) => slow(() => kube.get(type, key)),
      list: (type, options) => slow(() => kube.list(type, options)),
      create: (type, object) => slow(() => kube.create(type, object)),
      update: (type, object) => slow(() => kube.update(type, object)),
      patch: <T extends KubeObject>(
        type: ResourceType<T>,
        key: ObjectKey,
        patch: object,
        options?: PatchOptions,
      ) => slow(() => kube.patch<T>(type, key, patch, options)),
      delete: (type, key, options) => slow(() => kube.delete(type, key, options)),
      evict: () => Promise.resolve(),
      serverVersion: () => kube.serverVersion(),
    }
  }

  /** A claim from its beginning to its end, as the core has it. */
  begin(): void {
    const claim = this.stage.claim(`c-${++this.#serial}`, { types })
    const { uid = '' } = claim.metadata
    this.wanted.set(uid, claim)
    this.#threads.push(this.#live(uid))
  }

  async #live(uid: string): Promise<void> {
    const { clock, kube } = this.stage
    for (;;) {
      const claim = this.wanted.get(uid)
      if (claim === undefined) break
      if ((claim.status?.providerID ?? '') === '') {
        try {
          const { providerID } = await this.provider.create(claim, this.#end.signal)
          const stored = kube.put(karpenterKinds.nodeClaim, { ...claim, status: { providerID } })
          if (this.wanted.has(uid)) this.wanted.set(uid, stored)
          else this.#leaving.set(uid, stored)
        } catch {
          // The core tries again.
        }
      }
      await clock.sleep(1000 + 4000 * unit(this.random))
    }
    const last = this.#leaving.get(uid)
    if (last === undefined) return
    for (;;) {
      try {
        await this.provider.delete(last)
      } catch (error) {
        if (isProviderError(error, 'nodeClaimNotFound')) break
      }
      await clock.sleep(1000 + 4000 * unit(this.random))
    }
    await kube.delete(karpenterKinds.nodeClaim, { name: last.metadata.name }).catch(() => undefined)
  }

  /** The owner wants a claim no more; with `isLost` nobody tells the provider either. */
  async leave(uid: string, isLost = false): Promise<void> {
    const claim = this.wanted.get(uid)
    if (claim === undefined) return
    this.wanted.delete(uid)
    if (isLost) await this.stage.kube.delete(karpenterKinds.nodeClaim, { name: claim.metadata.name })
    else this.#leaving.set(uid, claim)
  }

  async user(): Promise<void> {
    const { kube } = this.stage
    const name = this.pick(types) ?? ''
    const key = { namespace: 'default', name }
    const fate = unit(this.random)
    const before = this.stage.replicas(name) ?? 0
    if (fate < 0.1 && before > 0) {
      this.#lowered++
      await kube.patch(hubKinds.machineDeployment, key, { spec: { replicas: before - 1 } })
    } else if (fate < 0.25) {
      const replicas = before + 1
      this.raised.set(name, (this.raised.get(name) ?? 0) + 1)
      await kube.patch(hubKinds.machineDeployment, key, { spec: { replicas } })
    } else if (fate < 0.5) {
      const machine = this.pick(this.stage.machines())
      if (machine === undefined || machine.metadata.deletionTimestamp !== undefined) return
      const uid = uidOfClaim(machine)
      // The core ends a claim whose Machine is gone.
      if (uid !== undefined) await this.leave(uid)
      await kube.delete(hubKinds.machine, { namespace: 'default', name: machine.metadata.name })
    } else if (fate < 0.75)
      await kube.patch(hubKinds.machineDeployment, key, { spec: { paused: this.chance(0.5) } })
    else {
      const uid = this.pick([...this.wanted.keys()])
      if (uid !== undefined) await this.leave(uid, true)
    }
  }

  async rest(): Promise<boolean> {
    const { clock, kube } = this.stage
    for (const name of types)
      await kube.patch(
        hubKinds.machineDeployment,
        { namespace: 'default', name },
        { spec: { paused: false } },
      )
    const launched = () => [...this.wanted.values()].every(({ status }) => (status?.providerID ?? '') !== '')
    const isCalm = await clock.advanceUntil(launched, 30 * minute)
    await clock.advance(90 * minute)
    return isCalm
  }

  async finish(): Promise<boolean> {
    for (const uid of this.wanted.keys()) await this.leave(uid)
    let isDone = false
    const note = () => {
      isDone = true
    }
    void Promise.all(this.#threads).then(note, note)
    const ended = await this.stage.clock.advanceUntil(() => isDone, 30 * minute)
    await this.stage.clock.advance(90 * minute)
    this.#end.abort()
    return ended
  }
}

/** Replicas are those of the Machines, and who has none is one that a user has added. */
function assertExact({ stage, raised, wanted }: Play): void {
  const machines = stage.machines()
  const bound = machines.flatMap((machine) => uidOfClaim(machine) ?? [])
  assert.deepEqual(bound.toSorted(), [...wanted.keys()].toSorted(), 'each claim has one Machine')
  for (const name of types) {
    const own = machines.filter(({ metadata }) => ownValue(metadata.labels, names.deploymentName) === name)
    assert.equal(own.length, stage.replicas(name), `replicas of ${name}`)
    const free = own.filter((machine) => uidOfClaim(machine) === undefined).length
    assert.ok(free <= (raised.get(name) ?? 0), `${free} Machines of ${name} belong to nobody`)
  }
}

for (const seed of [1, 2, 3])
  test(`users scale, delete, pause and lose while claims come and go (seed ${seed})`, async () => {
    const play = new Play(seed)
    const { stage } = play
    for (let turn = 0; turn < 200; turn++) {
      if (play.chance(0.3)) play.begin()
      if (play.chance(0.15)) await play.leave(play.pick([...play.wanted.keys()]) ?? '')
      if (play.chance(0.15)) await play.user()
      await stage.clock.advance(2000 * unit(play.random))
    }
    assert.ok(await play.rest(), 'every claim gets a Machine')
    assert.deepEqual(play.faults, [])
    assertExact(play)
    assert.ok(await play.finish(), 'every claim ends')
    assert.deepEqual(play.faults, [])
    assertExact(play)
  })
