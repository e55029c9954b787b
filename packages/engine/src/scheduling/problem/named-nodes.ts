/** Turns `matchFields` of node affinity, which name nodes, into requirements on host names (reports-2.md 8). */
import { labels, type NodeSelectorRequirement, type NodeSelectorTerm, type PodSpec } from '@tenon/api'
import type { NodeInput, TopologyNode } from '../../input/input.ts'

/** The host name of a node, by its name. */
export type HostNames = (node: string) => string

/** An unknown node name gives a host name that no node has. */
export function hostNames(
  nodes: readonly NodeInput[],
  topologyNodes: ReadonlyMap<string, TopologyNode>,
): HostNames {
  let hosts: ReadonlyMap<string, string> | undefined
  return (node) => {
    hosts ??= new Map(nodes.map(({ name, labels: own }) => [name, own[labels.hostname] ?? name]))
    return topologyNodes.get(node)?.hostname ?? hosts.get(node) ?? `no node ${node}`
  }
}

/** The spec with host names instead of node names; the same object if it names no node. */
export function withHostNames(spec: PodSpec, hostOf: HostNames): PodSpec {
  const nodeAffinity = spec.affinity?.nodeAffinity
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution
  const terms = [...(required?.nodeSelectorTerms ?? []), ...(preferred ?? []).map((each) => each.preference)]
  if (!terms.some(({ matchFields = [] }) => matchFields.length > 0)) return spec
  return {
    ...spec,
    affinity: {
      ...spec.affinity,
      nodeAffinity: {
        ...nodeAffinity,
        ...(required !== undefined && {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: required.nodeSelectorTerms.map((term) => termOf(term, hostOf)),
          },
        }),
        ...(preferred !== undefined && {
          preferredDuringSchedulingIgnoredDuringExecution: preferred.map((each) => ({
            ...each,
            preference: termOf(each.preference, hostOf),
          })),
        }),
      },
    },
  }
}

function termOf({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, hostOf: HostNames) {
  const hosts = matchFields.map((field): NodeSelectorRequirement => {
    return { ...field, key: labels.hostname, values: (field.values ?? []).map(hostOf) }
  })
  return { matchExpressions: [...matchExpressions, ...hosts] }
}
