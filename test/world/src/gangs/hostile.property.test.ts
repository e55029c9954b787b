/**
 * PodGroups, ProvisioningRequests and pods of them that nobody would write on purpose, many at a time and in shapes that
 * no API server lets in: the others run, and each bad one is told what is wrong with it (gangs.md 1, 5.2, 6, 8). More
 * stories: `TENON_GANG_STORIES=200`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  autoscalingKinds,
  type KubeObject,
  kinds,
  type Pod,
  podGroupKinds,
  type ResourceType,
} from '@tenon/api'
import { integerBetween, type LogFields, type Logger, SeededRandom, silentLogger } from '@tenon/runtime'
import { Misshapen, put } from '../bad-objects/misshapen-objects.test-support.ts'
import { podSpec, podTemplate } from '../capacity-buffers/buffer-stage.test-support.ts'
import { aType } from '../testing/pools.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { liveClaims, serveGroups } from './gang-stage.test-support.ts'
import {
  boundOf,
  openPlayed,
  ordinaryPod,
  play,
  playedGroup,
  playedPods,
} from './played-stage.test-support.ts'
import { request, stateOf } from './request-stage.test-support.ts'

const long = 'a'.repeat(253)

/** Where somebody is told what is wrong, and in which words. */
interface Told {
  /** Name of the object of the event. */
  readonly object: string
  readonly words: RegExp
}

type Make = (hostile: Hostile, name: string) => Told | undefined

const kubernetesGroup = podGroupKinds.kubernetes.find(({ version }) => version === 'v1alpha2') as ResourceType

/** Fields of a PodGroup of Kubernetes that no API server would tell, and what is said of them. */
const groupShapes: readonly (readonly [path: string, value: unknown, words: RegExp])[] = [
  ['spec', undefined, /spec must be/],
  ['spec', 'x', /spec must be/],
  ['spec.schedulingPolicy', null, /spec\.schedulingPolicy must be/],
  ['spec.schedulingPolicy', {}, /spec\.schedulingPolicy must be given exactly one of basic and gang/],
  ['spec.schedulingPolicy', { basic: {}, gang: { minCount: 2 } }, /must be given exactly one of/],
  ['spec.schedulingPolicy', { everything: {} }, /must be given exactly one of/],
  ['spec.schedulingPolicy.gang', {}, /spec\.schedulingPolicy\.gang\.minCount must be an integer above 0/],
  ['spec.schedulingPolicy.gang.minCount', 0, /minCount must be an integer above 0/],
  ['spec.schedulingPolicy.gang.minCount', -3, /minCount must be an integer above 0/],
  ['spec.schedulingPolicy.gang.minCount', '4', /minCount must be an integer above 0/],
  ['spec.schedulingPolicy.gang.minCount', 1.5, /minCount must be an integer above 0/],
  ['spec.schedulingConstraints', 'x', /spec\.schedulingConstraints must be/],
  ['spec.schedulingConstraints', { topology: [null] }, /topology\[0\] must be/],
  ['spec.schedulingConstraints', { topology: [{ key: '' }] }, /topology\[0\]\.key must be/],
  ['spec.schedulingConstraints', { topology: 'zone' }, /topology must be/],
  ['spec.priority', 'high', /spec\.priority must be an integer/],
  ['spec.resourceClaims', [null], /spec\.resourceClaims\[0\] must be/],
  ['status.conditions', [null], /status\.conditions\[0\] must be/],
  ['metadata.labels', 'x', /metadata\.labels must be a map/],
]

const requestShapes: readonly (readonly [path: string, value: unknown, words: RegExp])[] = [
  ['spec', undefined, /spec must be/],
  ['spec.podSets', undefined, /spec\.podSets must be/],
  ['spec.podSets', [], /spec\.podSets must be given at least one entry/],
  ['spec.podSets', [null], /spec\.podSets\[0\] must be/],
  ['spec.podSets', [{ podTemplateRef: { name: 'good-room' }, count: 0 }], /count must be an integer above 0/],
  [
    'spec.podSets',
    [{ podTemplateRef: { name: 'good-room' }, count: -1 }],
    /count must be an integer above 0/,
  ],
  [
    'spec.podSets',
    [{ podTemplateRef: { name: 'good-room' }, count: '3' }],
    /count must be an integer above 0/,
  ],
  ['spec.podSets', [{ podTemplateRef: { name: '' }, count: 1 }], /podTemplateRef\.name must be/],
  ['spec.podSets', [{ podTemplateRef: null, count: 1 }], /podTemplateRef must be/],
  ['spec.provisioningClassName', '', /spec\.provisioningClassName must be/],
  ['spec.provisioningClassName', 7, /spec\.provisioningClassName must be/],
  ['spec.parameters', ['noRetry'], /spec\.parameters must be a map/],
  ['spec.parameters', { noRetry: true }, /spec\.parameters\S* must be a text/],
  ['status.conditions', 'x', /status\.conditions must be/],
  [
    'status.conditions',
    [{ type: 'Provisioned', status: 'True', lastTransitionTime: 'soon' }],
    /must be a time/,
  ],
]

const missing = (name: string, object: string): Told => ({
  object,
  words: new RegExp(`its podgroups\\.\\S+/default/${name} does not exist; create it`),
})

/** Each makes some objects. */
const makers: readonly Make[] = [
  // A PodGroup in a shape that nobody would let in.
  (hostile, name) => {
    const [path, value, words] = hostile.of(groupShapes)
    playedGroup(hostile.stage, name, { minCount: 2 })
    hostile.misshapen.bendToo('PodGroup', name, put(path, value))
    playedPods(hostile.stage, name, 2)
    return { object: name, words }
  },
  // More pods than ever are.
  (hostile, name) => {
    playedGroup(hostile.stage, name, { minCount: hostile.of([3, 1_000_000, 2_147_483_647]) })
    playedPods(hostile.stage, name, 2)
    return { object: name, words: /runs with at least \d+ pods and has 2/ }
  },
  // A label that no node has.
  (hostile, name) => {
    const topologyKey = hostile.of(['example.com/rack', 'kubernetes.io/nothing', 'a'.repeat(63)])
    playedGroup(hostile.stage, name, { minCount: 2, topologyKey })
    playedPods(hostile.stage, name, 2)
    return {
      object: name,
      words: new RegExp(`label ${topologyKey}, which no node has and no NodePool gives`),
    }
  },
  // Its group is not there, or elsewhere.
  (hostile, name) => {
    hostile.stage.world.create(kubernetesGroup, {
      apiVersion: 'scheduling.k8s.io/v1alpha2',
      kind: 'PodGroup',
      metadata: { name, namespace: 'kube-system' },
      spec: { schedulingPolicy: { gang: { minCount: 2 } } },
    } as KubeObject)
    playedPods(hostile.stage, name, 2)
    return missing(name, `${name}-0`)
  },
  // The longest name, of a group that is not there.
  (hostile, name) => {
    playedPods(hostile.stage, name, 2, {}, long)
    return missing(long, `${name}-0`)
  },
  // A PodGroup of coscheduling or Volcano that says nothing, or nonsense.
  (hostile, name) => {
    const isVolcano = hostile.once(2)
    const type: ResourceType<KubeObject & { readonly spec?: object }> = isVolcano
      ? podGroupKinds.volcano
      : podGroupKinds.coscheduling
    const [spec, words] = hostile.of([
      [undefined, /spec must be/],
      [{}, /spec\.minMember must be an integer of 0 or more/],
      [{ minMember: -1 }, /spec\.minMember must be an integer of 0 or more/],
      [{ minMember: '3' }, /spec\.minMember must be an integer of 0 or more/],
      [{ minMember: null }, /spec\.minMember must be an integer of 0 or more/],
      [{ minMember: 1e300 }, /spec\.minMember must be an integer of 0 or more/],
    ] as const)
    hostile.stage.world.create(type, {
      apiVersion: `${type.group}/${type.version}`,
      kind: 'PodGroup',
      metadata: { name, namespace: 'default' },
      ...(spec !== undefined && { spec }),
    })
    hostile.members(name, isVolcano ? 'volcano' : 'coscheduling', name)
    return { object: name, words }
  },
  // Names that are none, of groups of which the pods may name anything.
  (hostile, name) => {
    const group = hostile.of(['other/train', 'good', 'a,b@c=d', '../..', long, '__proto__', 'constructor'])
    hostile.members(name, 'volcano', group)
    return undefined
  },
  // A ProvisioningRequest in a shape that nobody would let in.
  (hostile, name) => {
    const [path, value, words] = hostile.of(requestShapes)
    request(hostile.stage, name, { templates: ['good-room'] })
    hostile.misshapen.bendToo('ProvisioningRequest', name, put(path, value))
    return { object: name, words }
  },
  // One for more pods than can be, or for templates that are not there.
  (hostile, name) => {
    const [count, template, words] = hostile.of([
      [2_147_483_647, 'good-room', /it is for 2147483647 pods; at most 10000 can be/],
      [1, 'nowhere', /1 PodTemplate missing: nowhere/],
      [1, long, /1 PodTemplate missing/],
    ] as const)
    request(hostile.stage, name, { count, templates: [template] })
    return { object: name, words }
  },
  // Parameters that say nothing that is known.
  (hostile, name) => {
    const ValidUntilSeconds = hostile.of(['ten', '-5', '0', '', '1e3', '9'.repeat(200)])
    request(hostile.stage, name, { templates: ['vast'], parameters: { ValidUntilSeconds, noRetry: 'maybe' } })
    return { object: name, words: /spec\.parameters\.ValidUntilSeconds ".*" is ignored: give a number/ }
  },
  // Of a class that somebody else serves, or of none.
  (hostile, name) => {
    request(hostile.stage, name, { class: hostile.of(['check-capacity', 'example.com', long]), count: 5 })
    return undefined
  },
  // Conditions that somebody else set.
  (hostile, name) => {
    request(hostile.stage, name, { templates: ['vast'] })
    const status = hostile.of(['True', 'False', 'Unknown'])
    const lastTransitionTime = hostile.of(['1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z'])
    const condition = { type: 'Provisioned', status, reason: 'Somebody', message: '', lastTransitionTime }
    hostile.stage.patch(
      autoscalingKinds.provisioningRequest,
      name,
      { status: { conditions: [condition] } },
      'status',
      'default',
    )
    return undefined
  },
  // Pods made for requests that are not there, or of no name at all.
  (hostile, name) => {
    const of = hostile.of(['nowhere', long, 'other/train', '', '__proto__'])
    hostile.pod(name, { 'autoscaling.x-k8s.io/consume-provisioning-request': of })
    return undefined
  },
]

class Hostile {
  readonly stage: Stage
  readonly misshapen: Misshapen
  readonly #random: SeededRandom

  constructor(stage: Stage, misshapen: Misshapen, seed: number) {
    this.stage = stage
    this.misshapen = misshapen
    this.#random = new SeededRandom(`hostile gangs ${seed}`)
  }

  of<T>(all: readonly T[]): T {
    return all[integerBetween(this.#random, 0, all.length - 1)] as T
  }

  once(times: number): boolean {
    return integerBetween(this.#random, 1, times) === 1
  }

  /** Two pods of a group of one of the schedulers that are plug-ins. */
  members(name: string, source: 'coscheduling' | 'volcano', group: string): void {
    for (const at of [0, 1])
      this.pod(
        `${name}-${at}`,
        source === 'volcano' ? { 'scheduling.k8s.io/group-name': group } : {},
        source === 'volcano' ? {} : { 'scheduling.x-k8s.io/pod-group': group },
      )
  }

  pod(
    name: string,
    annotations: Readonly<Record<string, string>>,
    labels: Readonly<Record<string, string>> = {},
  ): void {
    this.stage.world.create<Pod>(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', annotations, labels },
      spec: podSpec('3'),
    })
  }
}

/** What is logged as an error. */
function errorsInto(errors: string[], own: LogFields = {}): Logger {
  return {
    ...silentLogger,
    error: (message, fields = {}) => {
      const { error } = { ...own, ...fields }
      errors.push(`${message} ${error instanceof Error ? error.stack : String(error)}`)
    },
    with: (more) => errorsInto(errors, { ...own, ...more }),
  }
}

const stories = Number(process.env['TENON_GANG_STORIES'] ?? 2)

for (let seed = 1; seed <= stories; seed++)
  test(`hostile gangs and requests keep nobody else from running, story ${seed}`, async (t) => {
    const errors: string[] = []
    const misshapen = new Misshapen()
    const { stage, cloud } = await openPlayed(t, {
      types: [aType('type-4', 4)],
      world: { servesRequests: true, apiPath: misshapen.path, logger: errorsInto(errors) },
    })
    serveGroups(stage)
    // Kinds that come later are looked for every minute.
    await play(stage, 61 * seconds)
    podTemplate(stage, 'good-room', podSpec('3'))
    podTemplate(stage, 'vast', podSpec('400'))
    const hostile = new Hostile(stage, misshapen, seed)
    const told: Told[] = []
    for (const [at, make] of makers.entries()) told.push(...[make(hostile, `bad-${at}`) ?? []].flat())
    playedGroup(stage, 'good', { minCount: 3 })
    playedPods(stage, 'good', 3)
    ordinaryPod(stage, 'plain-0', { cpu: '3' })
    request(stage, 'good-room', { count: 2 })
    await play(stage, 2 * minutes)
    assert.deepEqual(errors, [])
    assert.equal(boundOf(stage, 'good'), 3, 'the pods of the good gang')
    assert.equal(boundOf(stage, 'plain'), 1, 'the ordinary pod')
    assert.match(stateOf(stage, 'good-room', 'Provisioned'), /^True/)
    for (const { object, words } of told) {
      const said = saidOf(stage, object)
      assert.ok(
        said.some((message) => words.test(message)),
        `${object}: ${words} is not in\n${said.join('\n')}`,
      )
    }
    const names = cloud.instances.map(({ providerID }) => providerID)
    assert.equal(new Set(names).size, liveClaims(stage).length, 'each instance has its claim')
    // Somebody fixes them.
    misshapen.restore()
    await play(stage, 30 * seconds)
    assert.deepEqual(errors, [])
    assert.equal(boundOf(stage, 'good'), 3)
  })

/** What events say of an object. */
function saidOf(stage: Stage, name: string): readonly string[] {
  return stage.world.cluster.server.local
    .list(kinds.event as ResourceType<KubeObject & { message: string; involvedObject: { name: string } }>)
    .filter(({ involvedObject }) => involvedObject.name === name)
    .map(({ message }) => message)
}
