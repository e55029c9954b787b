/** A first NodePool, with its node class, for a cluster that has none (page.md 2). */
import {
  apiVersionOf,
  type KubeObject,
  karpenterKinds,
  labels,
  type NodeClass,
  type ResourceType,
} from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import type { FirstPool, StartAnswer } from '@tenon/console'
import { isKubeError, type KubeClient, type WatchingKubeClient } from '@tenon/kube'
import type { ProviderModule, SurveyModule } from '@tenon/provider'
import { yamlDocument } from '../../crds.ts'
import type { Io } from '../../io.ts'
import { onCluster } from '../../kubectl/connection.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { builtInProviders } from '../../providers.ts'
import { createCommand } from './apply-manifest.ts'

/** A first NodePool must not spend without end. */
const cpuLimit = 100
/** Name of the objects to create, if it is free. */
const firstName = 'default'

interface Start {
  readonly module: ProviderModule
  readonly survey: SurveyModule
}

/**
 * @param take takes a snapshot; it may fail where few objects may be read.
 * @throws KubectlError if the cluster does not answer.
 */
export async function startAnswer(
  io: Io,
  flags: SourceFlags,
  take: () => Promise<Snapshot>,
): Promise<StartAnswer> {
  const starts: Start[] = []
  for (const module of builtInProviders) {
    const survey = await module.survey?.()
    if (survey !== undefined) starts.push({ module, survey })
  }
  if (flags.snapshot !== undefined) {
    const snapshot = await take()
    return answerOf(
      ofCloud(starts, snapshot).map((start) => firstPool(start, classesIn(snapshot, start), flags)),
    )
  }
  return await onCluster(io, flags, async ({ client }) => {
    const { interrupted } = io
    const served = await filtered(starts, ({ survey }) => isServed(client, survey.nodeClass, interrupted))
    // A cluster may have definitions of several clouds; its controller knows which one it is in.
    const snapshot = served.length > 1 ? await take().catch(() => undefined) : undefined
    const known = snapshot === undefined ? [] : ofCloud(served, snapshot)
    const pools: FirstPool[] = []
    for (const start of known.length > 0 ? known : served)
      pools.push(firstPool(start, await classesOf(client, start, interrupted), flags))
    return answerOf(pools)
  })
}

function ofCloud(starts: readonly Start[], { cloud }: Snapshot): readonly Start[] {
  return starts.filter(({ survey: { nodeClass } }) =>
    cloud.nodeClasses.some(({ group, kind }) => group === nodeClass.group && kind === nodeClass.kind),
  )
}

function answerOf(pools: readonly FirstPool[]): StartAnswer {
  if (pools.length > 0) return { pools }
  const known = builtInProviders.map(({ title }) => title).join(', ')
  return {
    absent: `the cluster serves no node class of ${known}: install the CustomResourceDefinitions of its cloud first`,
  }
}

/** @param names of node classes that exist. */
function firstPool({ module, survey }: Start, names: readonly string[], flags: SourceFlags): FirstPool {
  const { group, kind } = survey.nodeClass
  const known = names.includes(firstName) ? firstName : names.toSorted()[0]
  const className = known ?? firstName
  const nodeClass = {
    apiVersion: apiVersionOf(survey.nodeClass),
    kind,
    metadata: { name: className },
    spec: survey.nodeClassSpecOf(''),
  }
  const requirements = survey.firstRequirements ?? [
    { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
  ]
  const pool = {
    apiVersion: apiVersionOf(karpenterKinds.nodePool),
    kind: karpenterKinds.nodePool.kind,
    metadata: { name: firstName },
    spec: {
      template: { spec: { nodeClassRef: { group, kind, name: className }, requirements } },
      disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter: '5m' },
      limits: { cpu: cpuLimit },
    },
  }
  const manifest = [...(known === undefined ? [nodeClass] : []), pool].map(yamlDocument).join('---\n')
  return {
    title: module.title,
    manifest,
    command: createCommand(manifest, flags),
    ...(known !== undefined && { nodeClass: known }),
  }
}

function classesIn({ objects }: Snapshot, { survey }: Start): readonly string[] {
  const apiVersion = apiVersionOf(survey.nodeClass)
  return objects
    .filter((each) => each.kind === survey.nodeClass.kind && each.apiVersion === apiVersion)
    .map(({ metadata }) => metadata.name)
}

/** Those that may be listed. */
async function classesOf(
  client: Pick<KubeClient, 'list'>,
  { survey }: Start,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    const found = await client.list<KubeObject>(survey.nodeClass, { signal })
    return found.map(({ metadata }) => metadata.name)
  } catch (error) {
    if (isKubeError(error, 'forbidden') || isKubeError(error, 'notFound')) return []
    throw error
  }
}

async function isServed(
  client: Pick<WatchingKubeClient, 'servedKinds'>,
  { group, kind, version }: ResourceType<NodeClass>,
  signal: AbortSignal,
): Promise<boolean> {
  return (await client.servedKinds(group, version, { signal })).some((each) => each.kind === kind)
}

async function filtered<T>(
  items: readonly T[],
  isKept: (item: T) => Promise<boolean>,
): Promise<readonly T[]> {
  const kept = await Promise.all(items.map(isKept))
  return items.filter((_, at) => kept[at] === true)
}
