/** Replicas in any state that users, Cluster API and processes that died can leave (reports-2.md 12). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, type NodeClaim, ownValue, type ResourceType } from '@tenon/api'
import type { ObjectKey, PatchOptions } from '@tenon/kube'
import { mortalProcess } from '@tenon/provider/contract-suite'
import { integerBetween, type Random, SeededRandom, unit } from '@tenon/runtime'
import { ownNames } from '../names.ts'
import type { Machine, MachineDeployment } from '../objects.ts'
import type { ClusterApiProvider } from '../provider.ts'
import { aClaim, hubKinds, names, Stage } from '../testing/fake-hub.test-support.ts'

const stories = Number(process.env['TENON_REPLICA_STORIES'] ?? 60)
const only = process.env['TENON_REPLICA_SEED']
const key = { namespace: 'default', name: 'md-0' }

const uidOfClaim = ({ metadata }: Machine) => ownValue(metadata.annotations, ownNames.nodeClaimUid)
const isLeaving = ({ metadata }: Machine) => metadata.deletionTimestamp !== undefined
const isMarked = ({ metadata }: Machine) => ownValue(metadata.annotations, names.deleteMachine) !== undefined

/** What users do, and how many replicas they add by it. */
const deeds: readonly (readonly [doing: string, more: number])[] = [
  ['mark and lower', -1],
  ['lower', -1],
  ['raise', 1],
  ['mark', 0],
  ['delete', 0],
]

class Story {
  readonly stage = new Stage()
  readonly random: Random
  readonly told: string[] = []
  readonly faults: string[] = []
  /** Claims that want a Machine, and those that are being deleted, by name. */
  readonly #claims = new Map<string, NodeClaim>()
  readonly #leaving = new Set<string>()
  #provider: ClusterApiProvider
  #serial = 0

  constructor(seed: string) {
    this.random = new SeededRandom(seed)
    const { stage } = this
    stage.barren.add('md-0')
    const machines = Array.from({ length: this.#upTo(6) }, (_, index) => this.#machine(index))
    const uids = machines.filter(isMarked).flatMap(({ metadata }) => metadata.uid ?? [])
    const replicas = this.#upTo(8)
    stage.add({
      spec: { replicas },
      annotations: {
        ...(this.#chance(0.5) && { [ownNames.asked]: String(this.#upTo(8)) }),
        ...(this.#chance(0.5) && {
          [ownNames.released]: uids.filter(() => this.#chance(0.5)).join(','),
        }),
      },
    })
    // Cluster API tells of its Machines at the MachineDeployment.
    stage.kube.cache(hubKinds.machine).onChange(({ kind }) => {
      const deployment = stage.deployment()
      if (kind !== 'updated' && deployment !== undefined)
        stage.kube.put(hubKinds.machineDeployment, {
          ...deployment,
          status: { ...deployment.status, replicas: stage.machines().length },
        })
    })
    this.#provider = this.#process()
  }

  #upTo(most: number): number {
    return integerBetween(this.random, 0, most)
  }

  #chance(share: number): boolean {
    return unit(this.random) < share
  }

  #pick<T>(all: readonly T[]): T | undefined {
    return all[Math.floor(unit(this.random) * all.length)]
  }

  /** Any state that a Machine can be in. */
  #machine(index: number): Machine {
    const { kube } = this.stage
    const name = `md-0-old-${index}`
    const uid = `uid-${name}`
    const claim = this.#chance(0.7) ? aClaim(`claim-${index}`) : undefined
    const providerID = `test:///${name}`
    if (claim !== undefined && this.#chance(0.9)) {
      const stored = kube.put(karpenterKinds.nodeClaim, { ...claim, status: { providerID } })
      this.#claims.set(claim.metadata.name, stored)
      if (this.#chance(0.3)) this.#leaving.add(claim.metadata.name)
    }
    return kube.put(hubKinds.machine, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Machine',
      metadata: {
        name,
        namespace: 'default',
        uid,
        finalizers: ['machine.cluster.x-k8s.io'],
        labels: {
          [names.deploymentName]: 'md-0',
          [names.setName]: 'md-0-set',
          ...(claim !== undefined && { [names.member]: '' }),
        },
        annotations: {
          ...(this.#chance(0.3) && { [names.deleteMachine]: 'yes' }),
          ...(claim !== undefined && {
            [ownNames.nodeClaim]: claim.metadata.name,
            [ownNames.nodeClaimUid]: claim.metadata.uid ?? '',
            [ownNames.workloadCluster]: 'this-cluster',
          }),
        },
        ...(this.#chance(0.1) && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      },
      spec: { clusterName: 'workload', providerID },
    })
  }

  /** A process that dies at one of its next writes, or lives. */
  #process(): ClusterApiProvider {
    const { stage } = this
    const death = { atWrite: 1 + this.#upTo(8), when: this.#chance(0.5) ? 'before' : 'after' } as const
    const { client, isDead } = mortalProcess(this.#chance(0.7) ? death : undefined)
    const mortal = client(stage.kube)
    const slow = async () => {
      await stage.clock.sleep(this.#upTo(300))
    }
    this.#isDead = isDead
    return stage.newProvider({
      ...mortal,
      get: async (type, at, options) => {
        await slow()
        return await mortal.get(type, at, options)
      },
      list: async (type, options) => {
        const found = await mortal.list(type, options)
        await slow()
        return found
      },
      patch: async <T extends KubeObject>(
        type: ResourceType<T>,
        at: ObjectKey,
        patch: object,
        options?: PatchOptions,
      ) => {
        await slow()
        const before = stage.deployment()
        const answer = await mortal.patch<T>(type, at, patch, options)
        if (type.plural === 'machinedeployments') this.#judge(before, stage.deployment())
        return answer
      },
    })
  }

  #isDead: () => boolean = () => false

  /** What Tenon writes leaves every Machine that stays its replica, as far as it had one, and those it binds. */
  #judge(before: MachineDeployment | undefined, now: MachineDeployment | undefined): void {
    const [from, to] = [before?.spec?.replicas ?? 0, now?.spec?.replicas ?? 0]
    if (from === to) return
    this.told.push(`Tenon: ${from} -> ${to}`)
    const staying = this.stage.machines().filter((each) => !isLeaving(each) && !isMarked(each))
    const bound = staying.filter((each) => uidOfClaim(each) !== undefined).length
    if (to < Math.min(from, staying.length) || (to > from && to < bound))
      this.faults.push(`${from} -> ${to} replicas with ${staying.length} Machines that stay, ${bound} bound`)
  }

  async act(): Promise<void> {
    const { stage } = this
    if (this.#isDead()) {
      this.told.push('the process changes')
      this.#provider = this.#process()
    }
    for (const [name, claim] of this.#claims)
      if (this.#leaving.has(name)) void this.#end(name, claim)
      else if ((claim.status?.providerID ?? '') === '') void this.#launch(name, claim)
    const fate = unit(this.random)
    if (fate < 0.15) this.#claims.set(`new-${++this.#serial}`, stage.claim(`new-${this.#serial}`))
    else if (fate < 0.3) this.#leaving.add(this.#pick([...this.#claims.keys()]) ?? '')
    else if (fate < 0.6) await this.#user()
    else if (fate < 0.7) {
      this.told.push('Cluster API goes on')
      stage.barren.clear()
      const deployment = stage.deployment()
      if (deployment) stage.kube.put(hubKinds.machineDeployment, deployment)
    } else if (fate < 0.8) stage.barren.add('md-0')
    await stage.clock.advance(this.#pick([0, 100, 500, 3000]) ?? 0)
  }

  async #user(): Promise<void> {
    const { kube } = this.stage
    const replicas = this.stage.replicas() ?? 0
    const machine = this.#pick(this.stage.machines().filter((each) => !isLeaving(each)))
    const [doing = '', more = 0] = this.#pick(deeds) ?? []
    this.told.push(`user: ${doing} ${machine?.metadata.name}`)
    if (machine !== undefined && doing.startsWith('mark'))
      await kube.patch(hubKinds.machine, machine.metadata, {
        metadata: { annotations: { [names.deleteMachine]: '' } },
      })
    if (machine !== undefined && doing === 'delete') await kube.delete(hubKinds.machine, machine.metadata)
    if (more !== 0)
      await kube.patch(hubKinds.machineDeployment, key, { spec: { replicas: Math.max(0, replicas + more) } })
  }

  async #launch(name: string, claim: NodeClaim): Promise<void> {
    const found = await this.#provider.create(claim).catch(() => undefined)
    if (found === undefined || this.#claims.get(name) !== claim) return
    const { providerID } = found
    this.#claims.set(
      name,
      this.stage.kube.put(karpenterKinds.nodeClaim, { ...claim, status: { providerID } }),
    )
  }

  async #end(name: string, claim: NodeClaim): Promise<void> {
    this.told.push(`end ${name}`)
    await this.#provider.delete(claim).catch(() => undefined)
  }
}

test(`RPB-33 replicas are never lowered below what stays, whoever marked, lowered, bound or died before (${stories} stories, TENON_REPLICA_STORIES)`, {
  timeout: 60 * 60_000,
}, async () => {
  for (let seed = 0; seed < stories; seed++) {
    const story = new Story(only ?? `${seed}`)
    for (let step = 0; step < 25; step++) {
      await story.act()
      assert.deepEqual(story.faults, [], `TENON_REPLICA_SEED=${only ?? seed}: ${story.told.join('; ')}`)
    }
  }
})
