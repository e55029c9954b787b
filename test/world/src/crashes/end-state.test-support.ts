/** What a run has come to, told without names that chance has drawn. */
import { type Condition, karpenterKinds, kinds, type KubeObject } from '@tenon/api'
import type { World } from '../world.ts'
import type { Stand } from './stand.test-support.ts'

/** Where offerings cost the same, so that the simulated provider leaves the choice to chance. */
const kwokZones = ['test-zone-a', 'test-zone-b', 'test-zone-c', 'test-zone-d']

/** Lines that are equal for two runs with the same outcome. */
export function endState({ world }: Stand): readonly string[] {
  const chance = chanceNames(world)
  const lines = [
    ...world
      .claims()
      .map(
        (claim) =>
          `claim ${about(claim, chance)} ${conditions(claim.status?.conditions?.filter((each) => !isOfItsHour(each)))}`,
      ),
    ...world
      .nodes()
      .map(
        (node) =>
          `node ${about(node, chance)} taints ${sorted((node.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`))} ${conditions(
            node.status?.conditions?.filter(({ type }) => type === 'Ready'),
          )}`,
      ),
    ...world.pods().map((pod) => {
      const node = world.nodes().find(({ metadata }) => metadata.name === pod.spec?.nodeName)
      const type = node?.metadata.labels?.['node.kubernetes.io/instance-type'] ?? node?.metadata.name ?? ''
      return `pod ${pod.metadata.labels?.app ?? ''} ${pod.status?.phase ?? ''} ${type} nominated ${pod.status?.nominatedNodeName === undefined ? 'no' : 'yes'}`
    }),
    ...[...world.instancesByClaim().values()].map(
      (instances) => `${instances.length} instance(s) of a claim`,
    ),
    ...world.cluster.cloud.instances().map(({ state, type }) => `cloud ${state} ${type}`),
    ...world.cluster.server.local.list(kinds.volumeAttachment).map(() => 'volume attachment'),
    ...world.cluster.server.local
      .list(karpenterKinds.nodePool)
      .map(({ metadata, status }) => `pool ${metadata.name} ${conditions(status?.conditions)}`),
  ]
  return lines.toSorted()
}

/** Names drawn by chance, longest first, so that none is part of one replaced before. */
function chanceNames(world: World): readonly string[] {
  return [
    ...world.nodes().flatMap(({ metadata, spec }) => [metadata.name, spec?.providerID ?? metadata.name]),
    ...world.claims().map(({ metadata }) => metadata.name),
    ...world.cluster.cloud.instances().map(({ id }) => id),
    ...kwokZones,
  ].toSorted((a, b) => b.length - a.length)
}

function about({ metadata }: KubeObject, chance: readonly string[]): string {
  const pairs = (all: Readonly<Record<string, string>> = {}) =>
    sorted(Object.entries(all).map(([key, value]) => `${key}=${chance.includes(value) ? '*' : value}`))
  const owners = (metadata.ownerReferences ?? []).map(({ kind }) => kind)
  const isGoing = metadata.deletionTimestamp === undefined ? '' : ' going'
  return `${isGoing} labels ${pairs(metadata.labels)} annotations ${sorted(Object.keys(metadata.annotations ?? {}).filter((key) => !isKubelets(key)))} finalizers ${sorted(metadata.finalizers ?? [])} owners ${sorted(owners)}`
}

/** That a claim was found consistent is written at the next check, every ten minutes. */
function isOfItsHour({ type, status }: Condition): boolean {
  return type === 'ConsistentStateFound' && status === 'True'
}

/** A kubelet puts this only on a Node that it makes itself, and whether it does is a race. */
function isKubelets(key: string): boolean {
  return key.startsWith('volumes.kubernetes.io/')
}

function conditions(all: readonly Pick<Condition, 'type' | 'status'>[] = []): string {
  return sorted(all.map(({ type, status }) => `${type}=${status}`))
}

function sorted(texts: readonly string[]): string {
  return `[${texts.toSorted().join(' ')}]`
}
