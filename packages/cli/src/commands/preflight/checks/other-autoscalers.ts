/** Finds other autoscalers of nodes: their Deployments, their leases, and what they write. */
import { karpenterKinds, kinds, type Lease, type NodeClaim } from '@tenon/api'
import { isKubeError, isNotServed, type KubeClient } from '@tenon/kube'
import { latestForeignWrite, writeText } from '@tenon/operator'
import { leaderAnnotations } from '../../../leader-annotations.ts'
import { isTenons } from '../../../source/controller.ts'
import type { RunningAutoscaler } from '../../../source/autoscalers.ts'
import {
  clusterAutoscalerLease,
  isHeld,
  statusConfigMaps,
  statusSign,
} from '../../../source/cluster-autoscaler-signs.ts'
import type { Check, CheckOutcome, Cloud, Finding, Installation } from '../check.ts'
import { selectorOf } from './node-pools.ts'

/** After so long without a write the other one is taken to be at rest. */
const recentMs = 10 * 60_000

export const otherAutoscalers: Check = {
  name: 'other-autoscalers',
  run: async ({ kube, clock, cloud, autoscalers, installation }, signal) => {
    if (autoscalers instanceof Error) throw autoscalers
    const now = clock.now()
    const leases = (await kube.list(kinds.lease, { signal })).filter((lease) => isHeld(lease, now))
    const { summary, findings } = judge(autoscalers, leases, installation)
    const claims = leases.some(looksForOthers) ? [] : await claimsOf(kube, cloud, signal)
    // Its Deployment or its lease says the same with more.
    const isFound =
      autoscalers.some(({ kind }) => kind === 'clusterAutoscaler') ||
      leases.some(({ metadata }) => metadata.name === clusterAutoscalerLease)
    const statuses = isFound ? [] : await statusFindings(kube, now, signal)
    return { summary, findings: [...findings, ...statuses, ...besideFindings(leases, claims, now)] }
  },
}

/** The same for the Cluster Autoscaler mode, which replaces a Cluster Autoscaler in its namespace. */
export const otherGroupScalers: Check = {
  name: 'other-autoscalers',
  run: ({ autoscalers, installation }) => {
    if (autoscalers instanceof Error) return Promise.reject(autoscalers)
    const findings = autoscalers.flatMap(({ kind, namespace, name }): readonly Finding[] => {
      const fix = `keep one of them: kubectl --namespace ${namespace} scale deployment ${name} --replicas=0`
      if (kind !== 'clusterAutoscaler')
        return [
          {
            status: 'warn',
            message: `Deployment ${namespace}/${name} runs ${kind === 'tenon' ? 'Tenon with NodePools' : 'Karpenter'}, which launches nodes for the same pods`,
            fix: 'keep their pods apart (docs/cluster-autoscaler/to-nodepools.md), or stop one of them',
          },
        ]
      return namespace === installation.namespace
        ? []
        : [
            {
              status: 'fail',
              message: `Deployment ${namespace}/${name} runs Cluster Autoscaler with a lease of its own: both would scale the same groups`,
              fix,
            },
          ]
    })
    return Promise.resolve({ summary: 'no other autoscaler is at work', findings })
  },
}

/** A Cluster Autoscaler that runs elsewhere, without a Deployment or lease here, is known by its status. */
async function statusFindings(
  kube: KubeClient,
  nowMs: number,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  try {
    return (await statusConfigMaps(kube, signal)).flatMap((status): readonly Finding[] => {
      const sign = statusSign(status, nowMs)
      if (sign === undefined) return []
      return [
        { status: 'warn', message: `${sign.what}, which launches nodes for the same pods`, fix: sign.fix },
      ]
    })
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    const message = `whether a Cluster Autoscaler writes its status is not known: ${error.message}`
    return [{ status: 'warn', message, fix: 'grant the right to list ConfigMaps' }]
  }
}

function judge(
  running: readonly RunningAutoscaler[],
  held: readonly Lease[],
  installation: Installation,
): CheckOutcome {
  const others = running.filter(({ kind }) => kind !== 'tenon')
  const findings = [
    ...others.map((other) => deploymentFinding(other, installation)),
    ...running
      .filter(
        (other) =>
          other.kind === 'tenon' && other.namespace !== installation.namespace && selectorOf(other) === '',
      )
      .map((other) => secondTenon(other, installation)),
    ...held.flatMap((lease) => leaseFinding(lease, running, installation)),
  ]
  return { summary: 'no other autoscaler is at work', findings }
}

function deploymentFinding({ kind, namespace, name }: RunningAutoscaler, own: Installation): Finding {
  const stop = `kubectl --namespace ${namespace} scale deployment ${name} --replicas=0`
  if (kind === 'clusterAutoscaler')
    return {
      status: 'warn',
      message: `Deployment ${namespace}/${name} runs Cluster Autoscaler, which launches nodes for the same pods`,
      fix: `keep their pods apart (docs/cluster-autoscaler/to-nodepools.md), or stop it: ${stop}`,
    }
  if (namespace === own.namespace)
    return {
      status: 'warn',
      message: `Deployment ${namespace}/${name} runs Karpenter; both use the lease ${own.leaseName}, so that one of them waits`,
      fix: `upgrade its release in place (docs/install.md), or stop it: ${stop}`,
    }
  return {
    status: 'fail',
    message: `Deployment ${namespace}/${name} runs Karpenter on the same NodePools`,
    fix: `install Tenon in namespace ${namespace} (-n ${namespace}), or stop Karpenter: ${stop}`,
  }
}

function secondTenon({ namespace, name }: RunningAutoscaler, own: Installation): Finding {
  return {
    status: 'fail',
    message: `Deployment ${namespace}/${name} runs Tenon in another namespace than ${own.namespace}`,
    fix: `check with -n ${namespace}, remove one of the two, or give both --node-pools`,
  }
}

/**
 * A Karpenter that runs elsewhere, without a Deployment or lease here, is known by what it writes (adoption.md 2). Where
 * Tenon leads and acts it has judged, and its lease has the words.
 */
function besideFindings(
  held: readonly Lease[],
  claims: readonly NodeClaim[],
  nowMs: number,
): readonly Finding[] {
  const fix = 'stop the other controller where it runs, or run Tenon with --take-over'
  const standing = held
    .filter(isTenons)
    .map(({ metadata }) => metadata.annotations?.[leaderAnnotations.standsBack] ?? '')
    .filter((because) => because !== '')
    .map((message): Finding => ({ status: 'fail', message, fix }))
  // Who wrote may have been stopped since, as in a takeover; only a Tenon that leads can tell.
  const write = latestForeignWrite(claims, nowMs - recentMs)
  if (write === undefined) return standing
  const message = `${writeText(write)}; if it still runs, Tenon will only observe`
  return [...standing, { status: 'warn', message, fix }]
}

/** Whether a Tenon leads that says by itself who else writes. */
function looksForOthers(lease: Lease): boolean {
  return isTenons(lease) && lease.metadata.annotations?.[leaderAnnotations.looksForOthers] === 'true'
}

/** NodeClaims of the cloud's node classes, or all if the cloud is not known. */
async function claimsOf(kube: KubeClient, cloud: Cloud, signal: AbortSignal): Promise<readonly NodeClaim[]> {
  try {
    const claims = await kube.list(karpenterKinds.nodeClaim, { signal })
    if (cloud.kind === 'unknown') return claims
    const served = new Set(cloud.module.nodeClasses.map(({ kind }) => kind))
    return claims.filter(({ spec }) => served.has(spec.nodeClassRef.kind))
  } catch (error) {
    if (isNotServed(error)) return []
    throw error
  }
}

/** A held lease without a Deployment: its holder runs outside the cluster, or as a static pod. */
function leaseFinding(
  { metadata, spec }: Lease,
  running: readonly RunningAutoscaler[],
  own: Installation,
): readonly Finding[] {
  const { name, namespace = '' } = metadata
  const holder = spec?.holderIdentity ?? ''
  const isExplained = (kind: RunningAutoscaler['kind']) =>
    running.some((each) => each.kind === kind && each.namespace === namespace)
  if (name === clusterAutoscalerLease && !isExplained('clusterAutoscaler'))
    return [
      {
        status: 'warn',
        message: `lease ${namespace}/${name} is held by ${holder}: Cluster Autoscaler runs, and launches nodes for the same pods`,
        fix: 'stop it where it runs, perhaps on the control plane, or keep its pods apart',
      },
    ]
  if (name !== own.leaseName || namespace === own.namespace) return []
  if (isExplained('karpenter') || isExplained('tenon')) return []
  return [
    {
      status: 'fail',
      message: `lease ${namespace}/${name} is held by ${holder}: a controller of the same NodePools runs`,
      fix: `install Tenon in namespace ${namespace} (-n ${namespace}), or stop the holder`,
    },
  ]
}
