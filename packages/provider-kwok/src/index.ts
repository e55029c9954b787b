export { defaultCatalogue } from './catalogue.ts'
export { type CatalogueReading, readCatalogue } from './catalogue-file.ts'
export { type KwokNodeClass, kwokNodeClassCrd, kwokNodeClassKind } from './nodeclass.ts'
export { type KwokDependencies, KwokProvider } from './provider.ts'
