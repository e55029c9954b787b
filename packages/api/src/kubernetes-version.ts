/** Versions of Kubernetes, and what differs between them (docs/design/0012). */
import type { ResizedRequests } from './pod-requests.ts'

/** Minor versions of Kubernetes 1 that Tenon is tested with; preflight, charts and docs say the same. */
export const testedMinors = { oldest: 33, newest: 37 } as const

/** From this minor on, kube-scheduler honours `status.nominatedNodeName` whoever wrote it. */
const nominationsByOthers = 35
/** From this minor on, kube-scheduler scores how a pod changes the balance of a node, not the balance with the pod. */
const scoredChange = 36
/** From this minor on, kube-scheduler compares the sums of a resized pod instead of adding up maxima. */
const comparedSums = 37
/** From this minor on, kubelets declare features. */
const declaringKubelets = 36

/** In these, the gate DRAExtendedResource is off by default and on by default, with a name for every DeviceClass. */
const implicitNames = { possible: 35, usual: 36 } as const

/**
 * The minor version of a server of Kubernetes 1.
 * @param gitVersion as `GET /version` reports it, such as `v1.36.3`, `v1.35.1-eks-1a2b3c` or `v1.37.0-rc.1`.
 * @returns undefined if it is not one of Kubernetes 1.
 */
export function minorOf(gitVersion: string): number | undefined {
  const [, minor] = /^v?1\.(\d{1,4})(?!\d)/.exec(gitVersion) ?? []
  return minor === undefined ? undefined : Number(minor)
}

/** What kube-scheduler scores as balance of a node: that with the pod, or how the pod changes it. */
export type ScoredBalance = 'use' | 'change'

/** Of an unknown version, as the newest does. */
export function scoredBalance(minor: number | undefined): ScoredBalance {
  return minor !== undefined && minor < scoredChange ? 'use' : 'change'
}

/** How kube-scheduler counts a pod that is resized in place; of an unknown version the way that never counts less. */
export function resizedRequests(minor: number | undefined): ResizedRequests {
  return minor !== undefined && minor >= comparedSums ? 'maximumOfSums' : 'sumOfMaxima'
}

/**
 * Whether each DeviceClass serves an extended resource of a name made of its own (devices.md 3.22); of an unknown
 * version, as in the newest.
 * @param isGateOn whether the server has kept `extendedResourceName` of some class.
 */
export function servesImplicitNames(minor: number | undefined, isGateOn: boolean): boolean {
  return minor === undefined || minor >= implicitNames.usual || (isGateOn && minor >= implicitNames.possible)
}

/** False if the version is unknown. */
export function honoursNominations(minor: number | undefined): boolean {
  return minor !== undefined && minor >= nominationsByOthers
}

/** What a kubelet of this minor declares with its default feature gates, sorted; undefined if the minor is unknown. */
export function featuresOfKubelet(minor: number | undefined): readonly string[] | undefined {
  if (minor === undefined) return undefined
  if (minor < declaringKubelets) return []
  return [
    'ExtendWebSocketsToKubelet',
    'InPlacePodLevelResourcesVerticalScaling',
    'InPlacePodVerticalScalingInitContainers',
    'RestartAllContainersOnContainerExits',
  ]
}
