/** Many claims come and go at once while the hub fails and processes change (cluster-api.md 9, 10, traps 1 to 10). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, type NodeClaim, ownValue, type ResourceType } from '@tenon/api'
import { type KubeClient, KubeError, type ObjectKey, type PatchOptions } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import { mortalProcess } from '@tenon/provider/contract-suite'
import { type Random, SeededRandom, unit } from '@tenon/runtime'
import { ownNames } from '../names.ts'
import type { ClusterApiProvider } from '../provider.ts'
import { Stage } from '../testing/fake-hub.test-support.ts'

const types = ['md-0', 'md-1', 'md-2', 'md-3', 'md-4']
const many = 100
const minute = 60_000

/** The client with every fifth call failing: half of them before anything happened, half of them after. */
function failing(client: KubeClient, random: Random): KubeClient {
  const chance = async <T>(act: () => Promise<T>): Promise<T> => {
    const fate = unit(random)
    if (fate < 0.1) throw new KubeError('server', 503, 'try again')
    const answer = await act()
    if (fate < 0.2) throw new KubeError('transport', 0, 'socket hang up')
    return answer
  }
  return {
    get: (type, key) => chance(() => client.get(type, key)),
    list: (type, options) => chance(() => client.list(type, options)),
    create: (type, object) => chance(() => client.create(type, object)),
    update: (type, object) => chance(() => client.update(type, object)),
    patch: <T extends KubeObject>(
      type: ResourceType<T>,
      key: ObjectKey,
      patch: object,
      options?: PatchOptions,
    ) => chance(() => client.patch<T>(type, key, patch, options)),
    delete: (type, key, options) => chance(() => client.delete(type, key, options)),
    evict: () => Promise.resolve(),
    serverVersion: () => client.serverVersion(),
  }
}

for (const seed of [1, 2, 3, 4, 5])
  test(`a hundred claims come and a hundred go, a fifth of the calls fails, the process changes twice (seed ${seed})`, async () => {
    const stage = new Stage()
    const random = new SeededRandom(seed)
    for (const name of types) stage.add({ name })
    const old = Array.from({ length: many }, (_, index) => `old-${index}`)
    const fleet = await Promise.all(
      old.map(async (name): Promise<NodeClaim> => {
        const { providerID } = await stage.launch(name, { types })
        return { ...stage.claim(name, { types }), status: { providerID } }
      }),
    )

    /** The process that leads, and what ends it. */
    let leader: { readonly provider: ClusterApiProvider; readonly end: AbortController }
    const over = new AbortController()
    const lead = () => {
      const end = new AbortController()
      const { client } = mortalProcess()
      const alive: KubeClient = client(failing(stage.kube, random))
      const stopped = async <T>(act: () => Promise<T>): Promise<T> =>
        end.signal.aborted ? await new Promise<never>(() => undefined) : await act()
      const provider = stage.newProvider({
        ...alive,
        get: (type, key) => stopped(() => alive.get(type, key)),
        list: (type, options) => stopped(() => alive.list(type, options)),
        patch: <T extends KubeObject>(
          type: ResourceType<T>,
          key: ObjectKey,
          patch: object,
          options?: PatchOptions,
        ) => stopped(() => alive.patch<T>(type, key, patch, options)),
        delete: (type, key, options) => stopped(() => alive.delete(type, key, options)),
      })
      provider.startControllers(end.signal)
      leader = { provider, end }
    }
    lead()

    /** As the core does: again and again, by whichever process leads. */
    const insist = async (attempt: (provider: ClusterApiProvider) => Promise<boolean>) => {
      while (!over.signal.aborted) {
        const { provider, end } = leader
        const ended = new Promise<boolean>((resolve) => {
          end.signal.addEventListener('abort', () => {
            resolve(false)
          })
        })
        if (await Promise.race([attempt(provider).catch(() => false), ended])) return
        await stage.clock.sleep(1000 + 2000 * unit(random))
      }
    }
    const removal = async (claim: NodeClaim) => {
      await insist(async (provider) => {
        try {
          await provider.delete(claim)
          return false
        } catch (error) {
          if (!isProviderError(error, 'nodeClaimNotFound')) throw error
          await stage.kube.delete(karpenterKinds.nodeClaim, { name: claim.metadata.name })
          return true
        }
      })
    }
    const launched = new Map<string, string>()
    const launch = async (name: string) => {
      const claim = stage.claim(name, { types })
      await insist(async (provider) => {
        const { providerID } = await provider.create(claim)
        const stored = { ...claim, status: { providerID } }
        stage.kube.put(karpenterKinds.nodeClaim, stored)
        launched.set(name, providerID)
        return true
      })
    }
    let isDone = false
    const note = () => {
      isDone = true
    }
    const work = Promise.all([
      ...fleet.map(removal),
      ...Array.from({ length: many }, (_, index) => launch(`new-${index}`)),
    ])
    void work.then(note, note)
    for (const afterMs of [2_000, 5_000]) {
      await stage.clock.advance(afterMs)
      leader!.end.abort()
      lead()
    }
    assert.ok(await stage.clock.advanceUntil(() => isDone, 30 * minute), 'everything ends')
    await work
    await stage.clock.advance(60 * minute)
    over.abort()
    leader!.end.abort()

    assert.equal(launched.size, many)
    assert.equal(new Set(launched.values()).size, many, 'no Machine is bound twice')
    const machines = stage.machines()
    const bound = new Map(
      machines.map(({ metadata, spec }) => [
        ownValue(metadata.annotations, ownNames.nodeClaim),
        spec?.providerID,
      ]),
    )
    for (const [name, providerID] of launched) assert.equal(bound.get(name), providerID, name)
    assert.equal(machines.length, many, 'no Machine is left over')
    assert.equal(
      types.reduce((sum, name) => sum + (stage.replicas(name) ?? 0), 0),
      many,
      'replicas are those of the Machines',
    )
  })
