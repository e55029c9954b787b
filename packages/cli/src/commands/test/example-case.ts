/**
 * @returns a commented example to start from.
 * @param files relative to the file of the case.
 */
export function exampleCase(files: readonly string[], nodePools: readonly string[]): string {
  return `# Run it with: tenon test .
apiVersion: tenon.sh/v1alpha1
kind: TestCase
metadata:
  name: ten pods of one core run
given:
  # Manifests, relative to this file. objects: takes them inline, snapshot: a file of tenon snapshot save.
  files: [${files.map((file) => JSON.stringify(file)).join(', ')}]
  # Instance types: those of the provider of the node classes, unless told otherwise.
  # catalogue: {provider: NAME, options: {zone: NAME}}
when:
  - pods: {name: web, count: 10, requests: {cpu: "1", memory: 1Gi}}
  # - scale: {workload: replicaset/default/web, replicas: 20}
  # - lose: {instanceType: NAME, zone: NAME}
  # - price: {instanceType: NAME, pricePerHour: 0.1}
  # - apply: {files: [changed.yaml]}
  # - delete: nodepool/NAME
  # - pass: 1h
expect:
  running: all
  nodePools: [${nodePools.map((name) => JSON.stringify(name)).join(', ')}]
  # instanceTypes: [NAME]
  # noInstanceTypes: [NAME]
  # nodesAtMost: 3
  # pricePerHourAtMost: 1.5
  # zonesBalanced: true
  # noDisruption: true
  # pending: [{pod: web, reason: untoleratedTaints}]
`
}
