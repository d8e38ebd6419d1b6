// Before the first paint, so that a dark page does not flash white. A file of its own: inline scripts are not allowed.
(function () {
  var wanted = null;
  try {
    wanted = localStorage.getItem('argosy.theme');
  } catch (e) {
    // No storage, no wish: the system's theme.
  }
  if (wanted === 'light' || wanted === 'dark') document.documentElement.dataset.theme = wanted;
})();
