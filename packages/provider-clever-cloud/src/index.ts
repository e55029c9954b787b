export * from './catalogue/flavors.ts'
export * from './names.ts'
export * from './nodeclass/types.ts'
export * from './nodegroup/types.ts'
