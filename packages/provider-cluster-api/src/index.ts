/** The provider for clusters whose machines Cluster API manages. */
export { clusterAPINodeClassCrd } from './nodeclass/crd.ts'
export { ownNames } from './names.ts'
export { type ClusterAPINodeClass, clusterAPINodeClassKind } from './nodeclass/types.ts'
export { kindsOf, type Machine, type MachineDeployment, type MachineSet } from './objects.ts'
export { openClusterApi } from './open.ts'
