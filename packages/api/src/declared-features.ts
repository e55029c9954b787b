/** Features that kubelets declare in `status.declaredFeatures` of their Node, and that pods may need (docs/design/0012). */
import type { Container, PodSpec } from './objects.ts'

/** Annotation of node classes: features that kubelets of their nodes declare, separated by commas. */
export const featuresAnnotation = 'tenon.sh/declared-features'

const none: readonly string[] = []

/**
 * Names of the features that a node must declare for kube-scheduler to bind the pod to it, sorted. Features that only a
 * resize of a bound pod needs are not among them.
 */
export function requiredFeatures(spec: PodSpec): readonly string[] {
  const restartsAll = [...spec.containers, ...(spec.initContainers ?? [])].some(restartsAllContainers)
  const usersOnHostNetwork = spec.hostNetwork === true && spec.hostUsers === false
  if (!restartsAll && !usersOnHostNetwork) return none
  return [
    ...(restartsAll ? ['RestartAllContainersOnContainerExits'] : []),
    ...(usersOnHostNetwork ? ['UserNamespacesHostNetworkSupport'] : []),
  ]
}

function restartsAllContainers({ restartPolicyRules }: Container): boolean {
  return restartPolicyRules?.some(({ action }) => action === 'RestartAllContainers') ?? false
}

/** Those of the features that are not declared; nothing is declared if it is unknown what is. */
export function undeclaredFeatures(
  features: readonly string[],
  declared: readonly string[] | undefined,
): readonly string[] {
  return features.length === 0 ? none : features.filter((name) => declared?.includes(name) !== true)
}
