import type { Pod } from '@tenon/api'
import { podFromTemplate } from '../objects/pod-factory.ts'
import { type Job, workloads } from '../objects/workloads.ts'

const trackingFinalizer = 'batch.kubernetes.io/job-tracking'
const failureCountKey = 'batch.kubernetes.io/job-index-failure-count'
const indexKey = 'batch.kubernetes.io/job-completion-index'

/**
 * A pod of the Job with the tracking finalizer.
 * @param failures of the index before this pod.
 */
export function jobPod(job: Job, index: number | undefined, failures = 0): Pod {
  const pod = podFromTemplate(job, workloads.job, job.spec.template)
  const { name, uid = '' } = job.metadata
  const labels: Record<string, string> = {
    ...pod.metadata.labels,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
    'controller-uid': uid,
    'job-name': name,
  }
  const metadata = {
    ...pod.metadata,
    labels,
    finalizers: [...(pod.metadata.finalizers ?? []), trackingFinalizer],
  }
  if (index === undefined) return { ...pod, metadata }
  labels[indexKey] = String(index)
  return {
    ...pod,
    metadata: {
      ...metadata,
      generateName: `${name}-${index}-`,
      annotations: {
        ...pod.metadata.annotations,
        [indexKey]: String(index),
        ...(job.spec.backoffLimitPerIndex !== undefined && { [failureCountKey]: String(failures) }),
      },
    },
    spec: withIndex(pod.spec, `${name}-${index}`),
  }
}

function withIndex(spec: Pod['spec'], hostname: string): Pod['spec'] & { readonly hostname: string } {
  const variable = {
    name: 'JOB_COMPLETION_INDEX',
    valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: `metadata.labels['${indexKey}']` } },
  }
  const extend = <C extends object>(container: C) => {
    const { env = [] } = container as { env?: readonly { name: string }[] }
    return env.some((each) => each.name === variable.name)
      ? container
      : { ...container, env: [...env, variable] }
  }
  return {
    ...spec,
    hostname,
    containers: spec.containers.map(extend),
    ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(extend) }),
  }
}

/** The completion index of a pod of an Indexed Job. */
export function indexOf(pod: Pod): number | undefined {
  const text = pod.metadata.annotations?.[indexKey]
  return text === undefined ? undefined : Number(text)
}

export function isTracked(pod: Pod): boolean {
  return pod.metadata.finalizers?.includes(trackingFinalizer) === true
}

export function untracked(pod: Pod): Pod {
  const finalizers = (pod.metadata.finalizers ?? []).filter((finalizer) => finalizer !== trackingFinalizer)
  return { ...pod, metadata: { ...pod.metadata, finalizers } }
}

/** How often the index of a pod had failed before. */
export function failuresBefore(pod: Pod): number {
  const count = Number(pod.metadata.annotations?.[failureCountKey] ?? 0)
  return Number.isInteger(count) ? count : 0
}
