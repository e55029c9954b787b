/**
 * CapacityBuffers with random references, sizes and limits, among PodTemplates, workloads and ResourceQuotas that come
 * and go: what statuses say, and what room is kept for, is worked out here from what the API server holds
 * (buffers-and-dra.md 2.1 to 2.4). More stories: `TENON_BUFFER_STORIES=200`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  autoscalingKinds,
  type CapacityBuffer,
  type Condition,
  conditionOf,
  type KubeObject,
  kinds,
  ownValue,
  type Pod,
  type PodTemplate,
  type PodTemplateSpec,
  type ResourceType,
} from '@tenon/api'
import { integerBetween, type Random, SeededRandom } from '@tenon/runtime'
import { seconds, type Stage } from '../testing/stage.test-support.ts'
import { openBuffers } from './buffer-stage.test-support.ts'

const namespaces = ['default', 'other']
const templateNames = ['a', 'b', 'constructor']
const workloadNames = ['web', 'db']
const bufferNames = ['one', 'two', 'three', 'four']

interface Workload extends KubeObject {
  readonly spec: { readonly replicas?: number; readonly template: PodTemplateSpec }
}
function workloadType(kind: string): ResourceType<Workload> {
  return { group: 'apps', version: 'v1', kind, plural: `${kind.toLowerCase()}s`, namespaced: true }
}
const workloadTypes = ['Deployment', 'StatefulSet', 'ReplicaSet'].map(workloadType)
const quotaType: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
}

/** Amounts as text with what they are in thousandths. */
const cores = {
  '100m': 100n,
  '500m': 500n,
  '1': 1000n,
  '1.5': 1500n,
  '1500m': 1500n,
  '2500m': 2500n,
  '5': 5000n,
}
const gpus = { '1': 1000n, '2': 2000n, '7': 7000n }
const gpu = 'example.com/gpu'

class Dice {
  readonly #random: Random

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
  }

  below(bound: number): number {
    return integerBetween(this.#random, 0, bound - 1)
  }

  /** Whether something happens that does once in so many times. */
  once(times: number): boolean {
    return this.below(times) === 0
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }

  amounts(): Readonly<Record<string, string>> {
    return {
      ...(!this.once(4) && { cpu: this.of(Object.keys(cores)) }),
      ...(this.once(3) && { [gpu]: this.of(Object.keys(gpus)) }),
    }
  }

  template(): PodTemplateSpec {
    const requests = this.amounts()
    const container = { name: 'app', image: 'registry.k8s.io/pause' }
    const own = ownValue(requests, gpu)
    const limits = own === undefined ? {} : { limits: { [gpu]: own } }
    return {
      metadata: { labels: { app: this.of(['x', 'y']) } },
      spec: { containers: [{ ...container, resources: { requests, ...limits } }] },
    }
  }

  /** A spec that is often wrong in one way or another. */
  bufferSpec(): CapacityBuffer['spec'] {
    const scalableRef = {
      kind: this.of([
        'Deployment',
        'Deployment',
        'StatefulSet',
        'ReplicaSet',
        'deployment',
        'Job',
        'DaemonSet',
        '',
      ]),
      name: this.of([...workloadNames, 'renamed', '']),
      ...(this.once(2) && { apiGroup: this.of(['', 'apps', 'apps', 'batch']) }),
    }
    const isTemplate = this.once(2)
    return {
      ...(isTemplate && {
        podTemplateRef: { name: this.of([...templateNames, ...templateNames, 'renamed', '']) },
      }),
      ...((isTemplate ? this.once(12) : !this.once(6)) && { scalableRef }),
      ...(!this.once(3) && { replicas: this.of([0, 1, 3, 8, -1]) }),
      ...(this.once(2) && { percentage: this.of([0, 1, 20, 50, 250, -5]) }),
      ...(this.once(3) && { limits: this.amounts() }),
      ...(this.once(5) && { provisioningStrategy: 'buffer.gke.io/standby-capacity' }),
    }
  }
}

/** Whether the API accepts a spec. */
function isAccepted({
  limits,
  percentage = 0,
  podTemplateRef,
  replicas,
  scalableRef,
}: CapacityBuffer['spec']): boolean {
  if (podTemplateRef !== undefined) {
    if (podTemplateRef.name === '' || scalableRef !== undefined) return false
    if (replicas === undefined && limits === undefined) return false
  }
  if (scalableRef !== undefined && (scalableRef.kind === '' || scalableRef.name === '')) return false
  return (replicas ?? 0) >= 0 && percentage >= 0
}

/** What a buffer's status is to say, with the pods that stand for its room. */
interface Expected {
  readonly ready: string
  /** Undefined while it is not resolved. */
  readonly replicas: number | undefined
  readonly podTemplate: string | undefined
  readonly labels: Readonly<Record<string, string>> | undefined
}

function milli(name: string, amount: string): bigint {
  return ownValue(name === gpu ? gpus : cores, amount) ?? 0n
}

function size(
  { limits, percentage, replicas }: CapacityBuffer['spec'],
  template: PodTemplateSpec,
  scale: number | undefined,
): number {
  const sizes = replicas === undefined ? [] : [replicas]
  if (scale !== undefined && scale > 0 && percentage !== undefined)
    sizes.push(Number((BigInt(scale) * BigInt(percentage) + 99n) / 100n))
  const requests = template.spec.containers[0]?.resources?.requests ?? {}
  const bounds = Object.entries(limits ?? {}).flatMap(([name, limit]) => {
    const request = ownValue(requests, name)
    return request === undefined ? [] : [Number(milli(name, limit) / milli(name, request))]
  })
  if (sizes.length === 0) return bounds.length === 0 ? 0 : Math.min(...bounds)
  return Math.min(Math.max(...sizes), ...bounds)
}

function expected(stage: Stage, { metadata, spec }: CapacityBuffer): Expected {
  const { local } = stage.world.cluster.server
  const { namespace = '' } = metadata
  const failed = (reason: string) => ({
    ready: `False/${reason}`,
    replicas: undefined,
    podTemplate: undefined,
    labels: undefined,
  })
  if (spec.podTemplateRef !== undefined) {
    const { name } = spec.podTemplateRef
    const found = local.get(kinds.podTemplate, namespace, name)
    if (found === undefined) return failed('PodTemplateNotFound')
    return {
      ready: 'True/Resolved',
      replicas: size(spec, found.template, undefined),
      podTemplate: `${name} ${found.metadata.generation}`,
      labels: found.template.metadata?.labels,
    }
  }
  if (spec.scalableRef === undefined) return failed('ResolutionFailed')
  const { apiGroup = '', kind, name } = spec.scalableRef
  const type = workloadTypes.find((each) => each.kind === kind)
  if (type === undefined || !['', 'apps'].includes(apiGroup)) return failed('ResolutionFailed')
  const found = local.get(type, namespace, name)
  if (found === undefined) return failed('ScalableRefNotFound')
  const { replicas = 1, template } = found.spec
  return {
    ready: 'True/Resolved',
    replicas: size(spec, template, replicas),
    podTemplate: undefined,
    labels: template.metadata?.labels,
  }
}

/** People at work in two namespaces. */
class Story {
  readonly #stage: Stage
  readonly #dice: Dice
  readonly done: string[] = []

  constructor(stage: Stage, seed: number) {
    this.#stage = stage
    this.#dice = new Dice(seed)
  }

  /** One change, which the API server may refuse, such as for a quota. */
  step(): void {
    const dice = this.#dice
    const namespace = dice.of(namespaces)
    const steps = [
      () => this.#buffer(namespace),
      () => this.#buffer(namespace),
      () => this.#buffer(namespace),
      () => this.#template(namespace),
      () => this.#workload(namespace),
      () => this.#quota(namespace),
    ]
    dice.of(steps)()
  }

  #buffer(namespace: string): void {
    const dice = this.#dice
    const type = autoscalingKinds.capacityBuffer
    const name = dice.of(bufferNames)
    const spec = dice.bufferSpec()
    const { local } = this.#stage.world.cluster.server
    const found = local.get(type, namespace, name)
    if (found !== undefined && dice.once(5)) return this.#delete(type, namespace, name)
    const object: CapacityBuffer = {
      apiVersion: `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: { name, namespace },
      spec,
    }
    const taken = this.#put(type, object)
    const isQuota = taken !== undefined && taken.includes('exceeded quota')
    assert.equal(taken === undefined || isQuota, isAccepted(spec), `${JSON.stringify(spec)}: ${taken}`)
  }

  #template(namespace: string): void {
    const name = this.#dice.of(templateNames)
    if (this.#dice.once(3)) return this.#delete(kinds.podTemplate, namespace, name)
    const object: PodTemplate = {
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name, namespace },
      template: this.#dice.template(),
    }
    this.#put(kinds.podTemplate, object)
  }

  #workload(namespace: string): void {
    const dice = this.#dice
    const type = dice.of(workloadTypes)
    const name = dice.of(workloadNames)
    const { local } = this.#stage.world.cluster.server
    const found = local.get(type, namespace, name)
    if (found !== undefined && dice.once(3)) return this.#delete(type, namespace, name)
    const replicas = dice.of([undefined, 0, 1, 2, 7])
    const template = found?.spec.template ?? dice.template()
    const selector = { matchLabels: template.metadata?.labels ?? {} }
    const own = { selector, template, serviceName: 'x', ...(replicas !== undefined && { replicas }) }
    const { serviceName: _, ...plain } = own
    const spec = type.kind === 'StatefulSet' ? own : plain
    this.#put(type, { apiVersion: 'apps/v1', kind: type.kind, metadata: { name, namespace }, spec })
  }

  #quota(namespace: string): void {
    const dice = this.#dice
    const { local } = this.#stage.world.cluster.server
    if (local.get(quotaType, namespace, 'q') !== undefined) return this.#delete(quotaType, namespace, 'q')
    const hard = dice.of([
      { pods: '0' },
      { 'requests.cpu': '1', 'requests.memory': '0' },
      { 'count/podtemplates': '1' },
      { 'count/capacitybuffers.autoscaling.x-k8s.io': '2' },
      { 'count/deployments.apps': '0' },
    ])
    const quota: KubeObject & { readonly spec: object } = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q', namespace },
      spec: { hard },
    }
    this.#put(quotaType, quota)
  }

  #put<T extends KubeObject>(type: ResourceType<T>, object: T): string | undefined {
    const { local } = this.#stage.world.cluster.server
    const { name, namespace = '' } = object.metadata
    this.done.push(JSON.stringify(object))
    try {
      const found = local.get(type, namespace, name)
      if (found === undefined) local.create(type, object)
      else local.update(type, { ...object, metadata: { ...found.metadata } })
      return undefined
    } catch (error) {
      return String(error)
    }
  }

  #delete(type: ResourceType, namespace: string, name: string): void {
    const { local } = this.#stage.world.cluster.server
    this.done.push(`delete ${type.kind} ${namespace}/${name}`)
    if (local.get(type, namespace, name) !== undefined) local.delete(type, namespace, name)
  }
}

/** Compares all buffers with what they are to be; one that is not resolved keeps the number that it had. */
function judge(stage: Stage): void {
  const all = stage.operator.operator.state.buffers.all()
  const seen = new Set<string>()
  for (const buffer of stage.world.cluster.server.local.list(autoscalingKinds.capacityBuffer)) {
    const { metadata, spec, status } = buffer
    const wanted = expected(stage, buffer)
    const replicas = wanted.replicas ?? status?.replicas
    const ready = conditionOf(buffer, 'ReadyForProvisioning')
    assert.deepEqual(
      [stateOf(ready), ready?.observedGeneration, status?.provisioningStrategy, status?.replicas],
      [wanted.ready, metadata.generation, spec.provisioningStrategy, replicas],
      metadata.name,
    )
    if (wanted.replicas !== undefined) {
      const { podTemplateGeneration: generation, podTemplateRef: ref } = status ?? {}
      assert.equal(ref && `${ref.name} ${generation}`, wanted.podTemplate)
    }
    judgePods(buffer, wanted, all, seen)
    const provisioning = stateOf(conditionOf(buffer, 'Provisioning'))
    assert.ok(provisioningStates(wanted).includes(provisioning), `${metadata.name}: ${provisioning}`)
  }
  assert.equal(all.length, seen.size, 'room is kept for nothing else')
}

const stateOf = (condition: Condition | undefined) => condition && `${condition.status}/${condition.reason}`

/** Nothing can be launched. A buffer that never was ready opens no pass, which would tell it. */
function provisioningStates({ replicas }: Expected): readonly (string | undefined)[] {
  if (replicas === undefined) return [undefined, 'False/BufferEmpty', 'False/NotReadyForProvisioning']
  return [replicas === 0 ? 'False/BufferEmpty' : 'False/RequiresNewCapacity']
}

function judgePods(
  { metadata: { name, namespace, uid = '' } }: CapacityBuffer,
  { labels, replicas = 0 }: Expected,
  all: readonly Pod[],
  seen: Set<string>,
): void {
  const pods = all.filter(({ metadata }) => metadata.uid?.startsWith(`${uid}-`))
  const wanted = Array.from({ length: replicas }, (_, at) => `capacity-buffer-${name}-${at + 1}`)
  assert.deepEqual(pods.map(({ metadata }) => metadata.name).toSorted(), wanted.toSorted())
  for (const { metadata } of pods) {
    assert.deepEqual([metadata.namespace, metadata.labels], [namespace, labels])
    seen.add(metadata.uid ?? '')
  }
}

for (let seed = 1; seed <= Number(process.env['TENON_BUFFER_STORIES'] ?? 1); seed++)
  test(`BUF-4 BUF-9 BUF-13 buffers with random references are what their templates and workloads say, story ${seed}`, async (t) => {
    const stage = await openBuffers(t, { limits: { nodes: '0' } })
    stage.world.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } })
    const story = new Story(stage, seed)
    for (let step = 0; step < 25; step++) {
      for (let change = 0; change < 4; change++) story.step()
      await stage.pass(32 * seconds)
      try {
        judge(stage)
      } catch (error) {
        t.diagnostic(`after\n${story.done.join('\n')}`)
        throw error
      }
    }
    assert.deepEqual(stage.world.nodes(), [])
  })
