import type { StoredObject } from '../../contract.ts'

/** Where autoscaling/v1 stores what it has no fields for. */
const metricsAnnotation = 'autoscaling.alpha.kubernetes.io/metrics'
const behaviorAnnotation = 'autoscaling.alpha.kubernetes.io/behavior'

interface Metric {
  readonly type: string
  readonly resource?: {
    readonly name: string
    readonly target?: { readonly type?: string; readonly averageUtilization?: number }
    readonly current?: { readonly averageUtilization?: number }
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Converts a stored autoscaler (autoscaling/v2) to autoscaling/v1. */
export function autoscalerFromStored(stored: StoredObject): StoredObject {
  const {
    metrics = [],
    behavior,
    ...spec
  } = (stored['spec'] ?? {}) as Fields & { metrics?: readonly Metric[] }
  const { currentMetrics, conditions: _conditions, ...status } = (stored['status'] ?? {}) as Fields
  const cpu = metrics.find(isCpu)
  const others = metrics.filter((metric) => metric !== cpu)
  const target = cpu?.resource?.target?.averageUtilization
  const current = (currentMetrics as readonly Metric[] | null | undefined)?.find(
    ({ resource }) => resource?.name === 'cpu',
  )?.resource?.current?.averageUtilization
  return {
    ...stored,
    apiVersion: 'autoscaling/v1',
    metadata: {
      ...stored.metadata,
      ...annotated(stored, {
        ...(others.length > 0 && { [metricsAnnotation]: JSON.stringify(others) }),
        ...(behavior !== undefined && { [behaviorAnnotation]: JSON.stringify(behavior) }),
      }),
    },
    spec: { ...spec, ...(target !== undefined && { targetCPUUtilizationPercentage: target }) },
    ...(stored['status'] !== undefined && {
      status: { ...status, ...(current !== undefined && { currentCPUUtilizationPercentage: current }) },
    }),
  }
}

/** Converts an autoscaler of autoscaling/v1 to its stored form. */
export function autoscalerToStored(shown: StoredObject): StoredObject {
  const { targetCPUUtilizationPercentage: target, ...spec } = (shown['spec'] ?? {}) as Fields
  const { currentCPUUtilizationPercentage: _current, ...status } = (shown['status'] ?? {}) as Fields
  const {
    [metricsAnnotation]: others,
    [behaviorAnnotation]: behavior,
    ...rest
  } = shown.metadata.annotations ?? {}
  const { annotations: _annotations, ...metadata } = shown.metadata
  const cpu = {
    type: 'Resource',
    resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: target } },
  }
  const metrics = [...(target === undefined ? [] : [cpu]), ...(listed(others) ?? [])]
  const rules = parsed(behavior)
  return {
    ...shown,
    apiVersion: 'autoscaling/v2',
    metadata: { ...metadata, ...(Object.keys(rest).length > 0 && { annotations: rest }) },
    spec: {
      ...spec,
      ...(metrics.length > 0 && { metrics }),
      ...(typeof rules === 'object' && rules !== null && { behavior: rules }),
    },
    ...(shown['status'] !== undefined && { status }),
  }
}

function isCpu({ type, resource }: Metric): boolean {
  return type === 'Resource' && resource?.name === 'cpu' && resource.target?.type === 'Utilization'
}

function annotated(object: StoredObject, more: Readonly<Record<string, string>>): object {
  return Object.keys(more).length === 0 ? {} : { annotations: { ...object.metadata.annotations, ...more } }
}

function listed(text: string | undefined): readonly unknown[] | undefined {
  const value = parsed(text)
  return Array.isArray(value) ? value : undefined
}

/** The value of an annotation, which may be invalid. */
function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
